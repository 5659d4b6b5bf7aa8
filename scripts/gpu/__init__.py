"""Whether EdBatch computes on a GPU what it computes on a CPU, and how fast."""

import sys
from importlib.util import find_spec

if find_spec("torch") is None:
    sys.exit("PyTorch, which EdBatch is measured beside, is not installed: pip install 'edbatch[bench]'")
