"""Ask real DyNet for what `tests/dynet/programs.py` learns: PYTHON_OF_DYNET record_programs.py.

Of each program the losses of 60 updates, and of the parameters after them every some, are kept.
"""

import json
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "dynet")
sys.path.insert(0, FOLDER)


def main():
    import dynet as dy
    import programs

    lines = []
    for name in programs.PROGRAMS:
        losses, values = programs.trained(dy, name)
        kept = values[:: max(1, len(values) // 50)]
        told = {"losses": [round(x, 6) for x in losses], "values": [round(x, 6) for x in kept.tolist()]}
        lines.append(json.dumps(name) + ": " + json.dumps(told))
    with open(os.path.join(FOLDER, "data", "programs.json"), "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
