"""Writes docs/torch-functions.md, which functions of PyTorch's lazy tensors have: python -m tests.torch.table."""

import textwrap
from collections import defaultdict
from inspect import getattr_static
from pathlib import Path

import torch

from edbatch.torch.lazy import LazyTensor, Refused
from edbatch.torch.registry import HANDLERS, METHODS

PAGE = Path(__file__).parents[2] / "docs/torch-functions.md"
VERSION = torch.__version__.partition("+")[0]
SPACES = [torch, torch.nn.functional, torch.special, torch.linalg, torch.fft]
FAMILIES = {
    "elementwise": "Element by element",
    "matrices": "Products and attention",
    "shape": "Shapes and joining",
    "index": "Parts",
    "reduce": "Reductions",
    "layers": "Layers",
    "recurrent": "Recurrent layers",
    "losses": "Losses",
    "constants": "Constructors and conversions",
    "bodies": "PyTorch functions written with these",
    "theirs": "PyTorch's own, called once for each batch",
    "": "Attributes and reading",
}
HEAD = f"""# Functions of PyTorch

[`edbatch.torch.Batched`](torch.md) supports these functions, methods and attributes of PyTorch {VERSION} for lazy
tensors, and refuses every other overridable one by name. `abs(_)` stands for `abs` and the method `abs_`, which works
in place. Lazy tensors also have the operators `+ - * / ** @`, comparisons, `+=` etc., `abs`, `len`, indexing and
iteration; `float`, `int` and `bool` read them; `torch.nn.utils.rnn` packs and pads them.
`python -m tests.torch.table` writes this page."""


def functions():
    """All names of all overridable functions, by namespace."""
    listed = {one for some in torch.overrides.get_overridable_functions().values() for one in some} | set(HANDLERS)
    for space in SPACES:
        for name, function in vars(space).items():
            if not name.startswith("_") and callable(function) and _in(function, listed):
                yield space.__name__, name, function
    for name in dir(torch.Tensor):
        if not name.startswith("_"):
            yield "torch.Tensor", name, getattr_static(torch.Tensor, name)


def _in(function, listed):
    try:
        return function in listed
    except TypeError:  # it has no hash
        return False


def family_of(space, name, function):
    """Which of FAMILIES it is in; None, if it is refused."""
    if space != "torch.Tensor":
        handler = HANDLERS.get(function)
    elif isinstance(getattr_static(LazyTensor, name, Refused("")), Refused):
        handler = None
    else:
        handler = METHODS.get(name.removesuffix("_"), METHODS.get(name, LazyTensor))
    if handler is None or handler is LazyTensor:
        return handler and ""
    family = handler.__module__.rpartition(".")[2]
    return family if family in FAMILIES else "elementwise"


def lines(named):
    """Names as a list by namespace; functions that are methods, too, come first."""
    spaces = {space: set(names) for space, names in named.items()}
    functions, methods = (spaces.pop(space, set()) for space in ("torch", "torch.Tensor"))
    in_place = {name for name in methods if name.removesuffix("_") in methods - {name}}
    marked = {name: f"{name}(_)" if f"{name}_" in in_place else name for name in methods}
    listed = {"torch` and `torch.Tensor": functions & methods, "torch": functions - methods}
    listed["torch.Tensor"] = methods - functions - in_place
    for space, names in (listed | dict(sorted(spaces.items()))).items():
        if names:
            text = ", ".join(marked[name] if "Tensor" in space else name for name in sorted(names))
            text = f"- `{space}`: `{text}`"
            yield textwrap.fill(text, 160, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def page():
    """The text."""
    families = defaultdict(lambda: defaultdict(list))  # with those that are refused
    for space, name, function in functions():
        families[family_of(space, name, function)][space].append(name)
    parts = ["\n".join([f"## {title}\n", *lines(families[family])]) for family, title in FAMILIES.items()]
    return "\n\n".join([HEAD, *parts]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
