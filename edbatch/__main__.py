"""`python -m edbatch` is the `edbatch` command."""

import sys

from edbatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
