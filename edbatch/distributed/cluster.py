"""Ray: begun for a while, or joined, for one use or several in turns."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any

from edbatch.distributed.ray import ray, runs
from edbatch.distributed.room import Room
from edbatch.distributed.waiting import answers
from edbatch.errors import EdBatchError, shown

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_worker_niceness": "0",
}


@dataclass(eq=False)
class _Joined:
    """Ray, as this process has it.

    Attributes:
        begun: here, and not by the program.
        address: of the cluster that was joined; None: it is this process's own.
        opened: what is undone in the end.
        users: trainings and mappings that run.
    """

    begun: bool
    address: str | None
    opened: ExitStack
    users: int = 0


_lock = Lock()
_joined: _Joined | None = None
_process: int | None = None  # that used Ray first: a copy of it, by `os.fork`, would wait for Ray for ever


@contextmanager
def cluster(place: str, address: str | None, workers: int, store: int) -> Iterator[Room]:
    """Ray, begun here and ended after, or that of an address, or the one this program has begun; room in it.

    Where several trainings and mappings run in turns, the first begins it, and the last ends it.

    Args:
        place: for messages.
        address: of a cluster that runs; None: one of this machine's own.
        workers: processes that it must have room for.
        store: bytes of shared memory, where it is begun here.

    Raises:
        EdBatchError: there is none at the address, it has too few processors, it cannot be begun, or this process was
            forked from one that used it.
    """
    if address is not None and not isinstance(address, str):
        raise EdBatchError(f"{place}: address: expected text such as '10.0.0.1:6379', got {shown(address)}")
    with _lock:
        joined = _entered(place, address, workers, store)
        joined.users += 1
    try:
        room = Room(place, workers, shared=not joined.begun or joined.address is not None)
        try:
            room.check()
            yield room
        finally:
            room.leave()
    finally:
        with _lock:
            _leave(joined)


def _entered(place: str, address: str | None, workers: int, store: int) -> _Joined:
    global _joined, _process
    if _process not in (None, os.getpid()):
        raise EdBatchError(
            f"{place}: this process was forked from one that used Ray; expected a new one (of `subprocess`, or of "
            "`multiprocessing` with the start method 'spawn')"
        )
    found, now, _process = ray(), _joined, os.getpid()
    if now is not None and now.users and found.is_initialized():
        if now.begun and address != now.address:
            where = "of this machine's own" if now.address is None else f"at {now.address}"
            raise EdBatchError(
                f"{place}: address: expected {now.address!r}, got {address!r}: what has not "
                f"ended uses the cluster {where}, and Ray allows one"
            )
        return now
    with ExitStack() as opened:
        opened.enter_context(_quiet())
        begun = not found.is_initialized()
        if begun:
            _begin(found, place, address, workers, store)
        _joined = _Joined(begun, address, opened.pop_all())
    return _joined


def _leave(joined: _Joined) -> None:
    joined.users -= 1
    if not joined.users:
        with joined.opened:
            if joined is _joined and joined.begun and runs():
                ray().shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """What Ray reads in the environment, and hands to workers that it begins: there NumPy has one thread."""
    before = {name: os.environ.get(name) for name in (*ONE_THREAD, *QUIET)}
    os.environ.update(QUIET | dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin(found: Any, place: str, address: str | None, workers: int, store: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
    if address is not None and not answers(address):  # Ray would ask for minutes
        raise EdBatchError(f"{place}: Ray at {address}: nobody answers there; expected a cluster that runs")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if address is None:
                found.init(num_cpus=workers, object_store_memory=store, **quiet)
            else:
                found.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (Exception, SystemExit) as error:
        with suppress(Exception):
            found.shutdown()
        where = "on this machine" if address is None else f"at {address}"
        raise EdBatchError(f"{place}: Ray {where}: {error}; expected a cluster that runs") from None
