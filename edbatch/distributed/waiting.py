"""Waiting for what remote calls give: never for ever, nor for a cluster that is gone."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from time import monotonic
from typing import Any

from edbatch.distributed.ray import ray, runs
from edbatch.errors import EdBatchError

SLICE = 1.0  # seconds between looks at whether the head is there
_looked = 0.0  # when the head was last seen


class WorkerLost(Exception):
    """A worker is gone, or does not answer."""


def results(place: str, refs: Sequence[Any], timeout: float) -> list[Any]:
    """What remote calls give, once all have ended.

    Raises:
        WorkerLost: one of them cannot end, or has not in so many seconds.
        EdBatchError: that one of them raised; or the cluster is gone.
    """
    deadline = monotonic() + timeout
    values: dict[Any, Any] = {}
    waiting = list(refs)
    while waiting:
        check_head(place)  # also while all goes well: a minute after it is gone Ray ends this process
        ready, waiting = ray().wait(waiting, num_returns=len(waiting), timeout=SLICE)
        values |= {ref: _value(place, ref) for ref in ready}
        if waiting and monotonic() > deadline:
            check_head(place, now=True)
            raise WorkerLost(f"no answer in {timeout:g} s")
    return [values[ref] for ref in refs]


def check_head(place: str, now: bool = False) -> None:
    """That the cluster runs, looked at every second, or now.

    Raises:
        EdBatchError: it does not.
    """
    global _looked
    if not runs():
        raise EdBatchError(f"{place}: Ray was shut down meanwhile; expected it to run as long as this does")
    if not now and monotonic() - _looked < SLICE:
        return
    there, _looked = _is_there(), monotonic()
    if not there:
        raise EdBatchError(f"{place}: the cluster's head is gone; expected it to run as long as this does")


def _value(place: str, ref: Any) -> Any:
    exceptions = ray().exceptions
    try:
        return ray().get(ref, timeout=SLICE * 30)
    except exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, EdBatchError):
            raise cause from getattr(cause, "raised", None)
        if isinstance(cause, exceptions.RayError):
            raise WorkerLost(_reason(cause)) from None
        found = EdBatchError(f"{place}: a worker raised {type(cause).__name__}: {cause}")
        found.add_note(str(error))
        raise found from None
    except exceptions.RayError as error:
        raise WorkerLost(_reason(error)) from None


def _reason(error: BaseException) -> str:
    """One line: that there was no memory, where it is said, or else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "memory" in line.lower()]
    return f"{type(error).__name__}: {(told or lines or [''])[0][:400]}"


def answers(address: str) -> bool:
    """Whether somebody answers at `host:port` or `ray://host:port`; what else Ray takes it knows itself."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return True
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5):
            return True
    except OSError:
        return False


def _is_there() -> bool:
    """Whether the head answers, and knows a machine that is there: Ray waits a minute, and then ends the process."""
    if not answers(ray().get_runtime_context().gcs_address):
        return False
    return any(node["Alive"] for node in ray().nodes())
