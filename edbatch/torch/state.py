"""What cells of a module depend on besides their arguments, in a form that can be compared."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

#: Entries of a list or dictionary that are looked at; of a longer one, which it is.
_ENTRIES = 64

ATOMS = (int, float, str, bool, bytes, type(None), torch.dtype, torch.device)

#: What a module of PyTorch's keeps that has no part in what it computes, or is found elsewhere: `Weight` follows those.
_BESIDES = frozenset({"_parameters"})

#: Of an owner of a class of users'; what its own functions name besides is watched by its cells, see `edbatch.cell`.
_OWN = ("training", "forward", "_modules", "_buffers", "_forward_hooks", "_forward_pre_hooks")


#: Attributes that hold others.
_PARTS = {"_modules": "a part", "_buffers": "a buffer"}


class Same:
    """An object that is equal to itself only, and held, so that no other gets its `id`."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def parts_of(owner: Any) -> list[nn.Module]:
    """The module and its parts."""
    return list(owner.modules()) if isinstance(owner, nn.Module) else []


def is_users(kind: type) -> bool:
    """Whether a class is not PyTorch's, nor made by it of one that is (see `torch.nn.utils.parametrize`)."""
    return not all(base.__module__.startswith(("torch.nn.", "builtins")) for base in kind.__mro__)


def state_of(owner: Any, is_whole: bool) -> tuple[Any, Any]:
    """The state of a module and that of its parts: modes, attributes, parts and buffers.

    Args:
        is_whole: whether all attributes of the module itself belong to it.
    """
    found = []
    for module in parts_of(owner):
        own = vars(module)
        names = _OWN if module is owner and is_users(type(module)) and not is_whole else own
        attributes = [(name, _compared(own.get(name))) for name in names if name not in _BESIDES]
        found.append((Same(module), type(module), *attributes))
    return tuple(found[:1]), tuple(found[1:])


def _compared(value: Any, depth: int = 0) -> Any:
    """What is equal for equal values."""
    if isinstance(value, ATOMS):
        return type(value), value
    if isinstance(value, nn.Parameter):
        return Same(value)
    if isinstance(value, torch.Tensor):
        return Same(value), -1 if value.is_inference() else value._version
    if hasattr(value, "is_lazy"):  # which no cell may use
        return None
    if isinstance(value, list | tuple | dict) and len(value) <= _ENTRIES and depth < 3:
        parts = value.items() if isinstance(value, dict) else value
        return type(value), tuple([_compared(part, depth + 1) for part in parts])
    return Same(value)


def changed(root: nn.Module, owner: Any, before: tuple[Any, Any], is_marked: bool) -> str:
    """What differs from an earlier state of a module, by its place below a root; "": nothing.

    Args:
        is_marked: whether attributes of the module itself count; else calls have seen to them.
    """
    now = state_of(owner, not is_marked)
    if now == before:
        return ""
    paths = {Same(module): path for path, module in root.named_modules(prefix=type(root).__name__)}
    for old, new in zip([*before[0], *before[1]], [*now[0], *now[1]], strict=False):
        held, found = (dict(one[2:]) if one[0] == new[0] else {} for one in (old, new))
        for name in held | found:
            if held.get(name) != found.get(name) and (is_marked or new[0].value is not owner or name in _PARTS):
                place = paths.get(new[0], type(new[0].value).__name__)
                return f"{_PARTS[name]} of {place}" if name in _PARTS else f"{place}.{name}"
    return ""


def holder_of_lazy(root: nn.Module) -> str:
    """What an error says about lazy tensors of an earlier call, that attributes hold."""
    found = [
        f"{path}.{name}"
        for path, module in root.named_modules(prefix=type(root).__name__)
        for name, value in vars(module).items()
        if any(hasattr(x, "is_lazy") for x in tree_leaves(value))
    ]
    return (
        f"a lazy tensor of an earlier call is used{', perhaps of ' * bool(found)}{' or '.join(found)}; expected what "
        "is kept from call to call to be returned, and given as an argument, x.detach()"
    )
