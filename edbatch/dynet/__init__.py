"""DyNet's Python API over EdBatch: `import edbatch.dynet as dy` in place of `import dynet as dy`.

Unchanged programs run after `edbatch.dynet.install()`, or by `python -m edbatch.dynet script.py`. Names, arguments and
meaning are DyNet's; what differs is said in docs/from-dynet.md.

Example:
    >>> import edbatch.dynet as dy
    >>> model = dy.ParameterCollection()
    >>> W, trainer = model.add_parameters((1, 2), init=1.0), dy.SimpleSGDTrainer(model, learning_rate=0.125)
    >>> for _ in range(2):
    ...     dy.renew_cg()
    ...     loss = dy.square(W * dy.inputVector([1, 1]) - 1)
    ...     loss.backward()
    ...     trainer.update()
    >>> loss.value(), W.value()
    (0.25, array([[0.625, 0.625]]))
    >>> dy.close_cg()
"""

from edbatch.dynet import (
    collection as _collection, config as dynet_config, entries as _entries, implicit as _implicit,
    inputs as _inputs, linear as _linear, losses as _losses, reduce as _reduce, shape as _shape,
)  # fmt: skip
from edbatch.dynet.config import DynetParams, init, install
from edbatch.dynet.inputs import reset_random_seed
from edbatch.dynet.expression import BatchedExpression, Expression
from edbatch.dynet.collection import Model, ParameterCollection
from edbatch.dynet.parameters import LookupParameters, Parameters
from edbatch.dynet.expression import Tensor
from edbatch.dynet.recurrent import (
    BiRNNBuilder, CompactVanillaLSTMBuilder, CoupledLSTMBuilder, FastLSTMBuilder, GRUBuilder, LSTMBuilder,
    SimpleRNNBuilder, VanillaLSTMBuilder,
)  # fmt: skip
from edbatch.dynet.files import load, load_generator, save
from edbatch.dynet.losses import ClassFactoredSoftmaxBuilder, StandardSoftmaxBuilder
from edbatch.dynet.states import RNNState
from edbatch.dynet.trainers import (
    AdadeltaTrainer, AdagradTrainer, AdamTrainer, AmsgradTrainer, MomentumSGDTrainer, RMSPropTrainer,
    SimpleSGDTrainer, Trainer,
)  # fmt: skip

__version__ = "2.1"
__gitversion__ = "edbatch"
for _module in (_collection, _implicit, _entries, _inputs, _linear, _losses, _reduce, _shape):
    globals().update(_module.TABLE)
init()  # the flags of the command line, which are taken out of it as DyNet does
__all__ = [name for name in globals() if not name.startswith("_")]
