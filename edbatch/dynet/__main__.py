"""Run a program in DyNet's style unchanged: `python -m edbatch.dynet script.py ...`."""

from __future__ import annotations

import os
import runpy
import sys


def main() -> None:
    """Run the program that the command line names, with the arguments behind it."""
    from edbatch.dynet.config import install

    if len(sys.argv) < 2:
        sys.exit("usage: python -m edbatch.dynet script.py [arguments]")
    install()
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
