import subprocess
import sys

CODE = """
import sys
from edbatch.policy import Heuristic, TypedGraph, get_policy, lower_bound, read_graph
get_policy("sufficient")
assert "numba" not in sys.modules, "before the first schedule"
get_policy("sufficient").schedule(TypedGraph.from_lists(["a"], [[]]))
assert "numba" in sys.modules
"""


def test_numba_is_imported_at_the_first_schedule():
    subprocess.run([sys.executable, "-c", CODE], check=True)
