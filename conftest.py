"""What pytest leaves alone of the package."""

from importlib.util import find_spec

# Most of it imports PyTorch (the extra `bench`), which the tests do without: what tests it skips then.
collect_ignore_glob = [] if find_spec("torch") else ["edbatch/experiments/peers/*.py"]
