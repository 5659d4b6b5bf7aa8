"""Whether EdBatch computes on a GPU what it computes on a CPU, and how fast."""

import sys
from importlib.util import find_spec

# Asked here, before the module that `-m` names is imported, which imports PyTorch.
if any(argument.endswith("scripts.gpu.check") for argument in sys.orig_argv) and find_spec("torch") is None:
    sys.exit("PyTorch, which EdBatch is measured beside, is not installed: pip install 'edbatch[torch]'")
