"""Training and inference on several processes and machines, on Ray (extra `ray`).

`train` is `Run.epochs` with the gradients of each mini-batch computed by workers; `map` runs programs over values, a
part of the samples on each worker. `shares` divides mini-batches by the number of nodes, `samples` knows which sample
is being recorded, `gradients` is what workers send each other, `job` what they get and say, `worker` is one of them,
`team` all of them, `steps` what they do for a run, `mapper` a worker of `map`. Scheduling, transport and shared memory
are Ray's: `cluster` begins it, `room` asks for processors, `waiting` waits; `failures` are errors of the caller's code.
Nothing here imports Ray before it is used.
"""

from edbatch.distributed.mapping import map
from edbatch.distributed.network import Network
from edbatch.distributed.samples import Recipe
from edbatch.distributed.training import Training, train

__all__ = ["Network", "Recipe", "Training", "map", "train"]
