"""Ray, which is imported when it is used."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from edbatch.base.later import imported
from edbatch.errors import EdBatchError


def ray() -> Any:
    """The module.

    Raises:
        EdBatchError: it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own dependencies
            return imported("ray")
    except ImportError as error:
        raise EdBatchError(
            f"edbatch.distributed needs Ray, which is not installed ({error}); expected pip install 'edbatch[ray]'"
        ) from None


def runs() -> bool:
    """Whether Ray runs in this process. Calls of it begin it where it does not, also at the end of a program."""
    return not sys.is_finalizing() and ray().is_initialized()
