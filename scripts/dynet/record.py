"""Ask real DyNet for what tests of `edbatch.dynet` expect: PYTHON_OF_DYNET record.py calls|programs|trainers.

Answers go to `tests/dynet/data`. A new call is a new line in `calls.json`, with whatever answer.
"""

import json
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "dynet")
sys.path.insert(0, FOLDER)


def answer(call):
    """What DyNet says to one call; in a process of its own, as DyNet's errors end processes, or spoil what follows."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        import calls

        sys.argv[1:] = ["--dynet-mem", "20"]
        import dynet as dy

        try:
            told = calls.asked(dy, call)
        except Exception as error:
            told = {"error": type(error).__name__}
        os.write(write, json.dumps(told).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        text = told.read()
    os.waitpid(child, 0)
    return json.loads(text.decode()) if text else {"error": "end of the process"}


def of_calls(path):
    """Values, dimensions and gradients of all calls of the file."""
    with open(path) as file:
        return {call: answer(call) for call in json.load(file)}


def of_programs(path):
    """Of each program the losses of 60 updates, and of the parameters after them every some."""
    import dynet as dy
    import programs

    found = {}
    for name in programs.PROGRAMS:
        losses, values = programs.trained(dy, name)
        kept = values[:: max(1, len(values) // 50)]
        found[name] = {"losses": [round(x, 6) for x in losses], "values": [round(x, 6) for x in kept.tolist()]}
    return found


def of_trainers(path):
    """What trainers do."""
    import dynet as dy
    import trainings

    return {" ".join(map(str, case)): trainings.trained(dy, *case) for case in trainings.CASES}


def main():
    what = sys.argv.pop(1)
    path = os.path.join(FOLDER, "data", what + ".json")
    found = {"calls": of_calls, "programs": of_programs, "trainers": of_trainers}[what](path)
    lines = [json.dumps(name) + ": " + json.dumps(told) for name, told in found.items()]
    with open(path, "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
