"""Training and inference on several processes and machines, on Ray (extra `ray`).

`train` is `Run.epochs` with the gradients of each mini-batch computed by workers; `map` runs programs over values, a
part of the samples on each worker. `shares` divides mini-batches by the number of nodes, `samples` knows which sample
is being recorded, `gradients` is what workers send each other, `worker` is one of them, `team` all of them, `mapper` a
worker of `map`, and `cluster` is Ray: scheduling, transport and shared memory are its. Nothing here imports Ray before
it is used.
"""

from edbatch.distributed.cluster import Network
from edbatch.distributed.mapping import map
from edbatch.distributed.training import Training, train

__all__ = ["Network", "Training", "map", "train"]
