"""Whether EdBatch computes on a GPU what it computes on a CPU, and how fast."""

import sys
from importlib.util import find_spec

# While Python looks for the module that `-m` names, this is the first argument; tests skip what needs PyTorch.
if sys.argv[:1] == ["-m"] and find_spec("torch") is None:
    sys.exit("PyTorch, which EdBatch is measured beside, is not installed: pip install 'edbatch[bench]'")
