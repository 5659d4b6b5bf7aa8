"""DyNet's Python API over EdBatch: `import edbatch.dynet as dy` in place of `import dynet as dy`.

Unchanged programs run after `edbatch.dynet.install()`, or by `python -m edbatch.dynet script.py`. Names, arguments and
meaning are DyNet's; what differs is said in docs/from-dynet.md.

Example:
    >>> import edbatch.dynet as dy
    >>> model = dy.ParameterCollection()
    >>> W, trainer = model.add_parameters((1, 2), init=1.0), dy.SimpleSGDTrainer(model, learning_rate=0.125)
    >>> for _ in range(2):
    ...     ignored = dy.renew_cg()
    ...     loss = dy.square(W * dy.inputVector([1, 1]) - 1)
    ...     loss.backward()
    ...     trainer.update()
    >>> loss.value(), W.value()
    (0.25, array([[0.625, 0.625]]))
    >>> dy.close_cg()
"""

from edbatch.dynet.bidirectional import BiRNNBuilder, StackedRNNState
from edbatch.dynet import checked as _checked
from edbatch.dynet.boxes import FloatValue, FloatVectorValue, UnsignedValue, UnsignedVectorValue
from edbatch.dynet.collection import Model, ParameterCollection
from edbatch.dynet.draws import reset_random_seed
from edbatch.dynet.elementwise import (
    abs, acos, acosh, argmax, asin, asinh, atan, atanh, bmax, bmin, cdiv, ceil, cmult, colwise_add, cos, cosh, cube,
    elu, erf, exp, flip_gradient, floor, lgamma, log, log_sigmoid, logistic, nobackprop, pow, rectify, round,
    scale_gradient, selu, silu, sin, sinh, softsign, sqrt, square, tan, tanh,
)  # fmt: skip
from edbatch.dynet.expression import BatchedExpression, Expression
from edbatch.dynet.gates import (
    vanilla_lstm_c, vanilla_lstm_gates, vanilla_lstm_gates_concat, vanilla_lstm_gates_dropout,
    vanilla_lstm_gates_dropout_concat, vanilla_lstm_h,
)  # fmt: skip
from edbatch.dynet.graph import (
    ComputationGraph, cg, cg_checkpoint, cg_revert, cg_version, close_cg, dump_cg, forward, npvalues, print_graphviz,
    print_text_graphviz, renew_cg, values,
)  # fmt: skip
from edbatch.dynet.hierarchical import HierarchicalSoftmaxBuilder
from edbatch.dynet.initializers import (
    ConstInitializer, FromFileInitializer, GlorotInitializer, IdentityInitializer, NormalInitializer, NumpyInitializer,
    PyInitializer, SaxeInitializer, UniformInitializer,
)  # fmt: skip
from edbatch.dynet.inputs import (
    const_parameter, constant, inputMatrix, inputTensor, inputTensorTranspose, inputVector, lookup, lookup_batch,
    matInput, one_hot, ones, parameter, random_bernoulli, random_gumbel, random_normal, random_uniform, scalarInput,
    sparse_inputTensor, vecInput, zeroes, zeros,
)  # fmt: skip
from edbatch.dynet import config as dynet_config
from edbatch.dynet.linear import (
    affine_transform, circ_conv, circ_corr, contract3d_1d, contract3d_1d_1d, contract3d_1d_1d_bias, contract3d_1d_bias,
    conv2d, conv2d_bias, filter1d_narrow, inverse, logdet, maxpooling2d,
)  # fmt: skip
from edbatch.dynet.losses import (
    binary_log_loss, block_dropout, constrained_softmax, dropout, dropout_batch, dropout_dim, hinge, hinge_batch,
    hinge_dim, huber_distance, l1_distance, layer_norm, log_softmax, noise, pairwise_rank_loss, pickneglogsoftmax,
    pickneglogsoftmax_batch, poisson_loss, softmax, sparsemax, sparsemax_loss, squared_distance, weight_norm,
)  # fmt: skip
from edbatch.dynet.parameters import LookupParameters, Parameters
from edbatch.dynet.reads import Tensor
from edbatch.dynet.recurrent import (
    CompactVanillaLSTMBuilder, CoupledLSTMBuilder, FastLSTMBuilder, GRUBuilder, LSTMBuilder, SimpleRNNBuilder,
    SparseLSTMBuilder, VanillaLSTMBuilder,
)  # fmt: skip
from edbatch.dynet.reduce import (
    average, cumsum, dot_product, emax, esum, l2_norm, logsumexp, logsumexp_dim, max_dim, mean_batches, mean_dim,
    mean_elems, min_dim, moment_batches, moment_dim, moment_elems, squared_norm, std_batches, std_dim, std_elems,
    sum_batches, sum_dim, sum_elems, trace_of_product,
)  # fmt: skip
from edbatch.dynet.saving import load, load_generator, save
from edbatch.dynet.setup import (
    ERRMSG, HAVE_CUDA, DeviceInfo, DynetParams, available_devices, get_device_info, init, init_from_params, install,
)  # fmt: skip
from edbatch.dynet.shape import (
    concatenate, concatenate_cols, concatenate_to_batch, fold_rows, kmax_pooling, kmh_ngram, pick, pick_batch,
    pick_batch_elem, pick_batch_elems, pick_range, pickrange, reshape, select_cols, select_rows, strided_select,
    to_device, transpose,
)  # fmt: skip
from edbatch.dynet.softmax_builders import ClassFactoredSoftmaxBuilder, SoftmaxBuilder, StandardSoftmaxBuilder
from edbatch.dynet.states import RNNState
from edbatch.dynet.trainers import (
    AdadeltaTrainer, AdagradTrainer, AdamTrainer, AmsgradTrainer, CyclicalSGDTrainer, MomentumSGDTrainer,
    RMSPropTrainer, SimpleSGDTrainer, Trainer,
)  # fmt: skip
from edbatch.dynet.tree_builders import (
    BidirectionalTreeLSTMBuilder, NaryTreeLSTMBuilder, TreeLSTMBuilder, UnidirectionalTreeLSTMBuilder,
)  # fmt: skip

__version__ = "2.1"
__gitversion__ = "edbatch"
init()  # the flags of the command line, which are taken out of it as DyNet does
_checked.guard(globals())
__all__ = [name for name in globals() if not name.startswith("_")]
