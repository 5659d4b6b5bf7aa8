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
    "elementwise": "Entry by entry",
    "matrices": "Products and attention",
    "shape": "Shapes, and parts put together",
    "index": "Parts",
    "reduce": "Over axes",
    "layers": "Layers",
    "recurrent": "Recurrent layers",
    "losses": "Losses",
    "constants": "Constructors and conversions",
    "bodies": "Written in PyTorch of these",
    "theirs": "PyTorch's own, called once for each batch",
    "": "Attributes and reading",
}
HEAD = f"""# Functions of PyTorch

All functions, methods and attributes that PyTorch {VERSION} lets other libraries define
(`torch.overrides.get_overridable_functions`): those that [`edbatch.torch.Batched`](torch.md) has for lazy tensors, and
those that it refuses with an error that names them. Arguments are PyTorch's; one that is not supported is refused, too.
Besides, lazy tensors have the operators `+ - * / ** @`, comparisons, `+=`, `-=`, `*=`, `/=`, `**=`, `abs`, `len`,
indexing and iteration, are read by `float`, `int` and `bool`, and `torch.nn.utils.rnn` packs and pads them.
`python -m tests.torch.table` writes this page.
"""


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
    """Names as a list by namespace."""
    for space in sorted(named):
        text = f"- `{space}`: " + ", ".join(f"`{name}`" for name in sorted(named[space]))
        yield textwrap.fill(text, 160, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def page():
    """The text."""
    families = {family: defaultdict(list) for family in (*FAMILIES, None)}
    for space, name, function in functions():
        families[family_of(space, name, function)][space].append(name)
    parts = [HEAD + "\n## Supported"]
    for family, title in FAMILIES.items():
        parts.append("\n".join([f"**{title}**\n", *lines(families[family])]))
    return "\n\n".join([*parts, "## Refused", "\n".join(lines(families[None]))]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
