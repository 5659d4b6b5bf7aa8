"""Functions that PyTorch writes in Python of others: what they are written of is recorded."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch.nn.functional as F

from edbatch.torch.recording import recording
from edbatch.torch.registry import register

#: How such a function asks whether to call another library's function instead.
_ASKING = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


def dtype_of(mask: Any) -> Any:
    """PyTorch's `_none_or_dtype`, of lazy tensors, too."""
    return None if mask is None else mask.dtype


def _of_body(function: Any) -> Callable[..., Any]:
    """The function without that question, where parameters are the module's."""
    known = function.__globals__ | dict.fromkeys(_ASKING, lambda *_: False) | {"_none_or_dtype": dtype_of}
    body = FunctionType(function.__code__, known, None, function.__defaults__)
    body.__kwdefaults__ = function.__kwdefaults__

    def handler(*args: Any, **kwargs: Any) -> Any:
        with recording():  # which is off in functions that it calls
            return body(*args, **kwargs)

    return handler


_NAMES = """
    instance_norm linear_cross_entropy multi_head_attention_forward normalize rrelu softmin tanhshrink
"""
for _name in _NAMES.split():
    if _function := getattr(F, _name, None):  # some are new
        register(_function)(_of_body(_function))
