"""The extension in C, where it was built.

The environment variable `EDBATCH_PURE_PYTHON`, if it is set to 1, leaves it aside.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

#: The module; None: what it does is done in Python.
extension: Any = None
if os.environ.get("EDBATCH_PURE_PYTHON") != "1":
    with suppress(ImportError):  # there was no compiler
        extension = import_module("edbatch.graph._recorder")
