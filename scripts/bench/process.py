"""Processes that answer questions, so that what they time takes turns with what runs here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from scripts import measured


class Process:
    """Each line of its standard input is a question as JSON, each line of its output an answer.

    Args:
        command: what runs, in one thread.
        root: of the checkout whose library it has, and where it runs; its errors are shown then. None: here.
        environment: what it has besides.
    """

    def __init__(self, command: Sequence[str], root: Path | None = None, **environment: str) -> None:
        self._command = command[0]
        if root:
            environment["PYTHONPATH"] = str(root)
        self._process = subprocess.Popen(
            command,
            text=True,
            env=measured(os.environ) | {"NUMBA_NUM_THREADS": "1"} | environment,
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if root else subprocess.DEVNULL,
        )

    def ask(self, *question: Any) -> Any:
        """The answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._command} ended without an answer to {question}")
        return json.loads(line)

    def timed(self, *question: Any) -> dict[str, float]:
        """Of an answer that is seconds by the clock and of its thread: figures for `interleaved`."""
        return dict(zip(("wall", "cpu"), self.ask(*question), strict=True))

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()
