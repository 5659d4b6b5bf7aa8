"""The extension in C, where it was built and the environment variable `EDBATCH_PURE_PYTHON` is not 1."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

extension: Any = None  # the module; None: what it does is done in Python
if os.environ.get("EDBATCH_PURE_PYTHON") != "1":
    with suppress(ImportError):  # there was no compiler
        extension = import_module("edbatch.graph._recorder")
