"""Optimizers and training runs; optimizers know the graph's parameters and kernels.

`trainer` is what all have in common, `groups` says which parameters they update, `storage` runs a rule over parameters
as they lie in memory, `arrays` is what is done with arrays besides, and `descent` and `adam` declare
optimizers: hyper-parameters and a rule for an entry. `run` is a training loop that goes on where it was killed, and
`curve` what it found out.
"""

from edbatch.training.adam import Adam, AdamW, AMSGrad
from edbatch.training.curve import Curve
from edbatch.training.descent import SGD, Adadelta, Adagrad, Momentum, RMSProp
from edbatch.training.run import Run
from edbatch.training.trainer import Trainer

__all__ = [
    "SGD",
    "AMSGrad",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Curve",
    "Momentum",
    "RMSProp",
    "Run",
    "Trainer",
]
