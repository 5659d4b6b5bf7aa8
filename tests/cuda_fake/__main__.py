"""EdBatch's command line on a CUDA that is faked: `python -m tests.cuda_fake demo`."""

import os
import sys

from edbatch.cli import main
from tests.cuda_fake.install import install

if __name__ == "__main__":
    install()
    os.environ["EDBATCH_DEVICE"] = "cuda"
    sys.exit(main())
