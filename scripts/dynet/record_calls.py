"""Ask real DyNet for values, dimensions and gradients of all calls in `calls.json`: PYTHON_OF_DYNET record_calls.py.

A new call is a new line there, with whatever answer.
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


def main():
    path = os.path.join(FOLDER, "data", "calls.json")
    with open(path) as file:
        lines = [json.dumps(call) + ": " + json.dumps(answer(call)) for call in json.load(file)]
    with open(path, "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
