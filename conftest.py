"""What the doctests of the package leave out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["edbatch/torch"]
