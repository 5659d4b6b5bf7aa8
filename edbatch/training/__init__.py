"""Optimizers and learning-rate schedules; they know the graph's parameters, and kernels that update these.

`trainer` is what all have in common, `groups` says which parameters they update, `storage` runs a rule over parameters
as they lie in memory, `arrays` is what is done with arrays besides, and `sgd`, `adaptive` and `adam` declare
optimizers: hyper-parameters and a rule for an entry.
"""

from edbatch.training import schedules
from edbatch.training.adam import Adam, AdamW, AMSGrad
from edbatch.training.adaptive import Adadelta, Adagrad, RMSProp
from edbatch.training.sgd import SGD, Momentum
from edbatch.training.trainer import Trainer

__all__ = ["SGD", "AMSGrad", "Adadelta", "Adagrad", "Adam", "AdamW", "Momentum", "RMSProp", "Trainer", "schedules"]
