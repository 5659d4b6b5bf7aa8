"""EdBatch runs neural networks whose structure differs per sample at the speed of hand-batched code.

Write lazy code for one sample; EdBatch collects the graphs of a mini-batch, decides with a learned policy what runs
together, and runs each batch as one kernel.
"""

from typing import TYPE_CHECKING, Any

from edbatch.base.lazy import imported as _imported
from edbatch.config import show_config
from edbatch.devices import device
from edbatch.errors import EdBatchError, EdBatchWarning
from edbatch.graph.array import array
from edbatch.graph.cell.cell import cell
from edbatch.graph.columns import current_graph
from edbatch.graph.draws import seed
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.expression_list import ExpressionList
from edbatch.graph.foreign import foreign
from edbatch.graph.foreign_run import foreign_run
from edbatch.graph.hints import FUNCTIONS as _FUNCTIONS
from edbatch.graph.hints import missing as _missing
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.exchange import from_dlpack
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.graph.ops import *  # noqa: F403
from edbatch.graph.ops import __all__ as _ops
from edbatch.graph.options import options
from edbatch.graph.replay.replay import replay
from edbatch.policy.policy import Policy, get_policy
from edbatch.runtime.gradients import backward, gradients
from edbatch.runtime.graph import Graph, forward
from edbatch.runtime.programs.requests import all, values
from edbatch.runtime.programs.run import run
from edbatch.runtime.report import Report
from edbatch.vertices.function import vertex
from edbatch.vertices.input_graph import InputGraph
from edbatch.vertices.vertex import Vertex
from edbatch.vertices.vertices import Vertices

if TYPE_CHECKING:
    from edbatch import data, distributed, init, models, schedules, serving, training
    from edbatch.models.torch_weights import from_torch
    from edbatch.policy.qlearning import learn
    from edbatch.training import SGD, Adadelta, Adagrad, Adam, AdamW, AMSGrad, Momentum, RMSProp, Run

__version__ = "0.2.0"

__all__ = [
    "AMSGrad",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "EdBatchError",
    "EdBatchWarning",
    "Expression",
    "ExpressionArray",
    "ExpressionList",
    "Graph",
    "InputGraph",
    "LookupParameters",
    "Momentum",
    "Parameter",
    "ParameterCollection",
    "Policy",
    "RMSProp",
    "Report",
    "Run",
    "SGD",
    "Vertex",
    "Vertices",
    "all",
    "array",
    "backward",
    "cell",
    "current_graph",
    "data",
    "device",
    "distributed",
    "foreign",
    "foreign_run",
    "forward",
    "from_dlpack",
    "from_torch",
    "get_policy",
    "gradients",
    "init",
    "learn",
    "models",
    "options",
    "replay",
    "run",
    "schedules",
    "seed",
    "show_config",
    "serving",
    "training",
    "values",
    "vertex",
    *_ops,
]


# Not imported before they are used: those that import Numba, which takes 0.2 s, and models, which import this module.
_LAZY = {"learn": "edbatch.policy.qlearning", "from_torch": "edbatch.models.torch_weights"} | dict.fromkeys(
    ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "AMSGrad", "Momentum", "RMSProp", "Run"],
    "edbatch.training",
)


_MODULES = ("data", "distributed", "init", "models", "schedules", "serving", "training")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _imported(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        raise _missing(__name__, name, _FUNCTIONS[name])
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_imported(_LAZY[name]), name)


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
