"""The signature of a function, whatever its annotations name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return `inspect.signature`; what an annotation names may come later, as the class that a method is of."""
    if sys.version_info >= (3, 14):  # annotations are evaluated when somebody asks for them: here
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
