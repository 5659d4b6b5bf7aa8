"""ED-Batch's nine workloads, TreeRNN and RNTN as one writes them in PyTorch; contests of the nine with EdBatch.

PyTorch (the extra `bench`) is imported where a contest is made, and by the files with its networks.
"""

from edbatch.experiments.peers.contest import contest
from edbatch.experiments.peers.sides import Contest

__all__ = ["Contest", "contest"]
