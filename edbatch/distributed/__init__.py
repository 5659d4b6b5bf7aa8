"""Training and inference on several processes and machines, on Ray (extra `ray`).

`train` is `Run.epochs` with the gradients of each mini-batch computed by workers; `map` runs programs over values, a
part of the samples on each worker. `cluster` begins Ray or joins it, makes workers and waits for them; `shares` divides
mini-batches, `samples` knows which sample is being recorded, `worker` is one process and `team` what drives all of
them; `failures` are errors of the caller's code. Nothing here imports Ray before it is used.
"""

from edbatch.distributed.mapping import map
from edbatch.distributed.samples import Recipe
from edbatch.distributed.training import Training, train

__all__ = ["Recipe", "Training", "map", "train"]
