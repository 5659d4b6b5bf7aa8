"""Ask real DyNet for what its trainers do to `tests/dynet/trainings.py`: PYTHON_OF_DYNET record_trainers.py."""

import json
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "dynet")
sys.path.insert(0, FOLDER)


def main():
    import dynet as dy
    import trainings

    found = {" ".join(map(str, case)): trainings.trained(dy, *case) for case in trainings.CASES}
    lines = [json.dumps(case) + ": " + json.dumps(told) for case, told in found.items()]
    with open(os.path.join(FOLDER, "data", "trainers.json"), "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
