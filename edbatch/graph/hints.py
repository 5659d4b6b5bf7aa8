"""Names and keywords of PyTorch's, and operators of Python's, that EdBatch has not: what to write instead.

The one table of them: `edbatch.__getattr__` reads it, and classes have their part of it by `with_hints`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import getattr_static
from typing import Any, NoReturn, TypeVar, cast

from edbatch.errors import MissingAttributeError, MissingOperatorError
from edbatch.graph import methods

Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

_NO_GRAD = "no such block: gradients are computed where backward() is called; eb.stop_gradient(x) ends one"
_DEVICE = "ParameterCollection(device=...) or Graph(device=...), where values then are"
_DTYPE = "dtype= of the ParameterCollection or the Graph"
_READ = "a function of NumPy of x.value(): there are no integers in a graph"
_CHANGE = "expressions never change"
_ARRAY = "eb.input(array), with an array of NumPy, a tensor or nested lists; eb.scalar(number)"
_TRAINING = "with eb.options(training=False), eb.Graph(): ..."
_LAYERS = "eb.models and functions of eb; parameters are of an eb.ParameterCollection"
_BROADCAST = "shapes that broadcast, or eb.stack and eb.concatenate"
_CHECKPOINT = "save(path) and load(path) of the ParameterCollection, which take the trainer, too"

#: Functions, of PyTorch and of `torch.nn.functional`.
FUNCTIONS = {
    **dict.fromkeys(("cat", "concat", "hstack", "vstack"), "eb.concatenate(xs, axis=0)"),
    **dict.fromkeys(("tensor", "Tensor", "as_tensor", "from_numpy", "rand", "randn", "arange", "eye"), _ARRAY),
    **dict.fromkeys(("no_grad", "inference_mode", "enable_grad", "set_grad_enabled"), _NO_GRAD),
    **dict.fromkeys(("nn", "Module", "Linear", "functional", "F"), _LAYERS),
    **dict.fromkeys(("cuda", "set_default_device"), f"eb.device(name), {_DEVICE}"),
    **dict.fromkeys(("mm", "bmm", "mv", "einsum"), "a @ b, of one sample"),
    **dict.fromkeys(("save", "load"), _CHECKPOINT),
    **dict.fromkeys(("zeros_like", "ones_like"), "eb.zeros(x.shape), eb.ones(x.shape)"),
    **dict.fromkeys(("expand", "repeat"), _BROADCAST),
    "optim": "eb.SGD, eb.Adam, ...",
    "autograd": "loss.backward(), then W.grad() of parameters and x.gradient() of expressions; or eb.gradients",
    "grad": "eb.gradients(loss, [W, x])",
    "compile": "@eb.cell, on what is the same at every step",
    "manual_seed": "eb.seed(n), and seed= of the ParameterCollection",
    "permute": "eb.transpose(x, axes)",
    "view": "eb.reshape(x, shape)",
    "chunk": "eb.split(x, parts)",
    "unbind": "list(x)",
    "clamp": "eb.clip(x, low, high)",
    "pow": "x ** y",
    "mul": "x * y",
    "sub": "x - y",
    "div": "x / y",
    "rsqrt": "x ** -0.5",
    "var": "eb.square(eb.std(x))",
    "topk": "eb.top_k(x, k)",
    "masked_fill": "eb.where(condition, x, y)",
    "index_select": "x[[0, 2]]",
    "embedding": "eb.lookup(table, i)",
    "linear": "W @ x + b",
    "nll_loss": "eb.cross_entropy(scores, label), or -eb.pick(eb.log_softmax(scores), label)",
    "mse_loss": "eb.mean(eb.square(x - y))",
    "l1_loss": "eb.mean(eb.abs(x - y))",
    "detach": "eb.stop_gradient(x)",
}

#: Attributes of values: of expressions and parameters.
VALUE = {
    **dict.fromkeys(("cpu", "cuda", "to"), _DEVICE),
    **dict.fromkeys(("float", "double", "half", "bfloat16", "type"), _DTYPE),
    **dict.fromkeys(("long", "int", "bool"), _READ),
    **dict.fromkeys(("sort", "argsort", "nonzero", "any", "all", "unique"), _READ),
    **dict.fromkeys(("clone", "contiguous"), f"x itself: {_CHANGE}"),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "clamp_"), f"x = x + y, ...: {_CHANGE}"),
    **dict.fromkeys(("expand", "expand_as", "repeat", "tile"), _BROADCAST),
    **dict.fromkeys(("mm", "bmm", "mv"), "x @ y"),
    **dict.fromkeys(
        ("requires_grad", "requires_grad_"), "W.freeze() of a parameter that has none, or eb.stop_gradient(x)"
    ),
    **{
        name: f"eb.{name}(x, ...)"
        for name in ("argmax", "argmin", "cumsum", "gather", "scatter", "scatter_add", "unfold", "split", "where")
    },
    **{name: f"x {sign} y" for name, sign in {"add": "+", "sub": "-", "mul": "*", "div": "/"}.items()},
    **{name: FUNCTIONS[name] for name in ("index_select", "masked_fill", "rsqrt", "topk", "unbind", "var")},
    "dim": "x.ndim",
    "numel": "x.size",
}

#: Attributes of expressions, of parameters, of trainers and of collections of parameters.
EXPRESSION = {
    "device": _DEVICE,
    "data": "x.value(), or eb.stop_gradient(x)",
    "grad": "x.gradient()",
    "grad_fn": "loss.backward(), then x.gradient()",
    "retain_grad": "x.gradient(), which every expression has after backward()",
}
PARAMETER = {
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "clamp_", "copy_", "fill_", "zero_"), "W.set_value(array)"),
    "data": "W.value() and W.set_value(array)",
}
TRAINER = {
    "step": "update(), which also forgets the gradients",
    "param_groups": "groups",
    "add_param_group": "groups, a list to append to",
    "state_dict": f"state(), or {_CHECKPOINT}",
    "load_state_dict": f"load_state(...), or {_CHECKPOINT}",
}
COLLECTION = {
    **dict.fromkeys(("to", "cuda", "cpu"), "ParameterCollection(device=...)"),
    **dict.fromkeys(("float", "double", "half"), "ParameterCollection(dtype=...)"),
    **dict.fromkeys(("train", "eval"), _TRAINING),
    **dict.fromkeys(("state_dict", "load_state_dict"), _CHECKPOINT),
    "parameters": "the collection itself: eb.Adam(model), `for parameter in model`",
    "named_parameters": "items()",
    "register_parameter": "add_parameters(shape, name=...)",
    "requires_grad_": "freeze()",
}

#: Keywords of functions and methods.
KEYWORDS = {
    "dim": "axis=",
    "dims": "axis=",
    "keepdim": "keepdims=",
    "dtype": _DTYPE,
    "device": _DEVICE,
    "requires_grad": "freeze() of a parameter that has no gradient",
    "retain_graph": "no such argument: the graph stays, and backward() may be called again",
    "create_graph": "no such argument: there are no gradients of gradients",
    "inputs": "backward(), then x.gradient()",
    "set_to_none": "no such argument: a parameter without a gradient has none (`has_grad`)",
    "closure": "update() after backward()",
    "inplace": f"y = f(x): {_CHANGE}",
    "reduction": "the loss of one sample; eb.sum or eb.mean of a list of losses",
    "padding_idx": "eb.lookup of what is there: nothing is padded",
    "bias": "b as a summand",
    "p": "the rate by place",
}

#: What to do where the body of a cell decides by an argument.
KEYWORD_ONLY = (
    "what decides what the cell computes must be a keyword-only parameter, as s is of `def c(x, *, s=...)`, given by "
    "keyword: c(x, s=...)"
)

_ROUNDED = "rounding has no gradient: expected /, or numbers and arrays that are computed of .value()"
_BITS = "there are no integers in a graph: expected numbers and arrays computed of .value(), or * and + of comparisons"
_WRITTEN = "its entries cannot be set: expected eb.concatenate or eb.stack of its parts, or, of a parameter, set_value"

_ROUNDING = {"floordiv": "//", "mod": "%", "divmod": "divmod"}
_OF_BITS = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}

#: Per method of Python that is missing, the operator, and what to do instead.
MISSING: dict[str, tuple[str, str]] = {
    **{f"__{side}{name}__": (sign, _ROUNDED) for name, sign in _ROUNDING.items() for side in ("", "r")},
    **{f"__{side}{name}__": (sign, _BITS) for name, sign in _OF_BITS.items() for side in ("", "r")},
    "__invert__": ("~", _BITS),
    "__setitem__": ("x[...] =", _WRITTEN),
    "__delitem__": ("del x[...]", _WRITTEN),
    "__index__": ("an integer", "its value is not known before it runs: expected int(x.value())"),
}


class Size(int):
    """A number of entries, which PyTorch calls for the size along an axis."""

    def __call__(self, *axis: Any, **given: Any) -> NoReturn:
        """Refuse."""
        shown = ", ".join(map(repr, (*axis, *given.values())))
        what = f"x.shape[{shown}]" if shown else "x.shape"
        raise MissingOperatorError(f"size({shown}): expected {what}; x.size is a number")


class _Missing:
    """An attribute that is not there, and says what is."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint
        self.__doc__ = None

    def __get__(self, owner: Any, kind: type | None = None) -> NoReturn:
        raise missing(kind.__name__ if kind is not None else "", self._name, self._hint)


_MISSING = _Missing("", "")


def missing(owner: str, name: str, hint: str) -> MissingAttributeError:
    """The error about a name that something has not; like those of modules and classes that have other names, too."""
    return MissingAttributeError(f"{owner} has no attribute {name!r}; expected {hint}")


def with_hints(hints: Mapping[str, str]) -> Callable[[Kind], Kind]:
    """Have names that a class lacks say what to write instead: with a `__getattr__` all attributes would be slower."""

    def hinted(kind: Kind) -> Kind:
        for name, hint in hints.items():
            if isinstance(getattr_static(kind, name, _MISSING), _Missing):
                setattr(kind, name, _Missing(name, hint))
        kind.__dir__ = _listed  # type: ignore[method-assign,assignment]
        return kind

    return hinted


def _listed(self: Any) -> list[str]:
    """The attributes that are there."""
    return [name for name in object.__dir__(self) if not isinstance(getattr_static(type(self), name, None), _Missing)]


_UNEXPECTED = re.compile(r"^(?:\w+\.)*(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def has_function(name: str) -> bool:
    """Whether there is a function of a name."""
    return hasattr(vars(methods)["ops"], name)


def explain_keyword(error: BaseException) -> None:
    """Add to Python's error about a keyword of one of our functions what the keyword is called here.

    Functions have no parameter for it, which would make each call slower.
    """
    found = _UNEXPECTED.match(str(error)) if isinstance(error, TypeError) else None
    if found is None or found[2] not in KEYWORDS or hasattr(error, "__notes__"):
        return
    if found[1] in ("backward", "zero_grad") or hasattr(methods.Methods, found[1]) or has_function(found[1]):
        error.add_note(f"{found[1]}: expected {KEYWORDS[found[2]]} in the place of {found[2]}=, which is PyTorch's")


def explaining(function: Function) -> Function:
    """Have a function that may be called outside of graphs explain keywords, as graphs do when they are left."""

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            explain_keyword(error)
            raise

    return cast("Function", call)


def without_operators(kind: type) -> type:
    """Have the operators that a class lacks say what to write instead."""
    for name, (sign, instead) in MISSING.items():
        setattr(kind, name, _refusing(sign, instead))
    return kind


def _refusing(sign: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *_: Any) -> NoReturn:
        raise MissingOperatorError(f"{sign} of {self!r}: {instead}{hint_in_cells(self)}")

    return refuse


def hint_in_cells(value: Any) -> str:
    """The end of an error's text about a decision by a value, where it is an argument of a cell that is traced."""
    return f"; {KEYWORD_ONLY}" if hasattr(getattr(value, "graph", None), "payloads") else ""
