"""Ray: begun for a while, or joined; its workers, and waiting for them, but not for ever."""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from threading import Lock
from time import monotonic, sleep
from typing import Any

from edbatch.base.context_stack import contextmanager
from edbatch.base.lazy import LazyModule, imported
from edbatch.base.numbers import checked_integer, is_real
from edbatch.distributed.failures import unsendable
from edbatch.errors import EdBatchError, shown
from edbatch.graph.options import current_options
from edbatch.kernels.cpu import cores

cloudpickle = LazyModule("ray.cloudpickle")

MOST = 1024  # workers: more are a slip of the pen
PATIENCE = 10.0  # seconds in which processors of what has just ended become free
SLICE = 1.0  # seconds between looks at whether the head is there
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
}  # what Ray reads, and workers that it begins inherit


class WorkerLost(Exception):
    """A worker is gone, or does not answer."""


def ray() -> Any:
    """The module; an `EdBatchError` where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own dependencies
            return imported("ray")
    except ImportError as error:
        raise EdBatchError(
            f"edbatch.distributed needs Ray, which is not installed ({error}); expected pip install 'edbatch[ray]'"
        ) from None


def _runs() -> bool:
    """Whether Ray runs in this process: calls of it begin it where it does not, also at the end of a program."""
    return not sys.is_finalizing() and ray().is_initialized()


def checked(place: str, workers: Any, timeout: Any) -> tuple[int, float]:
    """These arguments; an `EdBatchError` where they are out of range, or Ray is not installed."""
    if not is_real(timeout) or not timeout > 0:
        raise EdBatchError(f"{place}: timeout: expected seconds, got {shown(timeout)}")
    n = checked_integer(place, "workers", workers, most=MOST)
    ray()
    return n, float(timeout)


class Cluster:
    """Ray, as one training or mapping has it.

    Args:
        place: for messages.
        own: whether Ray was begun for this: workers share the machine as other processes do; else each has a processor.
        here: whether workers are on this machine.
    """

    def __init__(self, place: str, own: bool, here: bool) -> None:
        self._place, self._own, self._here = place, own, here
        self._looked = 0.0  # when the head was last seen
        self._made: list[Any] = []

    def new(self, n: int, kind: type, *arguments: Any) -> list[Any]:
        """So many workers of a class; an `EdBatchError` where too few processors are free."""
        self.check()
        deadline = monotonic() + PATIENCE
        while not self._own and (free := ray().available_resources().get("CPU", 0)) < n:
            if monotonic() > deadline:
                total = ray().cluster_resources().get("CPU", 0)
                raise EdBatchError(
                    f"{self._place}: {n} processors are needed, and {free:g} of the cluster's {total:g} are free; "
                    "use fewer workers, or wait until other jobs have ended"
                )
            sleep(SLICE / 10)
        options = {"num_cpus": 0 if self._own else 1, "max_restarts": 0}
        found = [ray().remote(kind).options(**options).remote(*arguments) for _ in range(n)]
        self._made += found
        return found

    def end(self, workers: Sequence[Any] | None = None) -> None:
        """End workers, or all that were made."""
        for worker in self._made if workers is None else workers:
            if _runs():
                with suppress(Exception):
                    ray().kill(worker)

    def options(self, n: int) -> dict[str, Any]:
        """The options in force, for so many workers: on this machine each has its share of the cores."""
        found = asdict(current_options())
        if not found["threads"] and not cores.asked() and self._here:
            found["threads"] = max(1, cores.available() // n)
        return found

    def put(self, job: Any, named: Mapping[str, Any]) -> Any:
        """A reference to what all workers get, pickled: arrays in shared memory could not be written to.

        Raises:
            EdBatchError: it cannot be pickled; names which of these things cannot.
        """
        try:
            return ray().put(cloudpickle.dumps(job))
        except Exception as error:
            things = ((f"the {name}, with all that it refers to,", thing) for name, thing in named.items())
            raise unsendable(self._place, things, error) from error

    def results(self, refs: Sequence[Any], timeout: float) -> list[Any]:
        """What remote calls give, once all have ended.

        Raises:
            WorkerLost: one of them cannot end, or has not in so many seconds.
            EdBatchError: that one of them raised; or the cluster is gone.
        """
        deadline = monotonic() + timeout
        values: dict[Any, Any] = {}
        waiting = list(refs)
        while waiting:
            self.check()  # also while all goes well: a minute after it is gone Ray ends this process
            ready, waiting = ray().wait(waiting, num_returns=len(waiting), timeout=SLICE)
            values |= {ref: self._value(ref) for ref in ready}
            if waiting and monotonic() > deadline:
                self.check(now=True)
                raise WorkerLost(f"no answer in {timeout:g} s")
        return [values[ref] for ref in refs]

    def check(self, now: bool = False) -> None:
        """Raise an `EdBatchError` if the cluster is gone; it looks every second, or now."""
        if not _runs():
            raise EdBatchError(f"{self._place}: Ray was shut down; keep it running until the end")
        if now or monotonic() - self._looked > SLICE:
            address = ray().get_runtime_context().gcs_address
            if not _answers(address) or not any(node["Alive"] for node in ray().nodes()):
                raise EdBatchError(
                    f"{self._place}: the cluster's head node does not answer; keep it running until the end"
                )
            self._looked = monotonic()

    def _value(self, ref: Any) -> Any:
        exceptions = ray().exceptions
        try:
            return ray().get(ref, timeout=SLICE * 30)
        except exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, EdBatchError):
                raise cause from getattr(cause, "raised", None)
            if isinstance(cause, exceptions.RayError):
                raise WorkerLost(_reason(cause)) from None
            raise EdBatchError(f"{self._place}: a worker raised {type(cause).__name__}: {cause}") from error
        except exceptions.RayError as error:
            raise WorkerLost(_reason(error)) from None


_lock = Lock()
_users = 0  # trainings and mappings that have not ended, of Ray that was begun here
_address: str | None = None  # of the cluster that was begun, or joined, here
_process: int | None = None  # that used Ray first: a copy of it, by `os.fork`, would wait for Ray for ever


@contextmanager
def cluster(place: str, address: str | None, workers: int, store: int) -> Iterator[Cluster]:
    """Ray: the program's own, if it has begun one; or begun here by the first that needs it, and ended by the last.

    It is joined at an address, or has this machine's processes for so many workers, and bytes of shared memory.

    Raises:
        EdBatchError: there is none at the address, it cannot be begun, or this process was forked from one with Ray.
    """
    global _users, _address, _process
    if address is not None and not isinstance(address, str):
        raise EdBatchError(f"{place}: address: expected text such as '10.0.0.1:6379', got {shown(address)}")
    with _lock:
        if _process not in (None, os.getpid()):
            raise EdBatchError(
                f"{place}: this process was forked from one that used Ray; start a new one with `subprocess`, or with "
                "`multiprocessing` and the start method 'spawn'"
            )
        begun = _users > 0 or not ray().is_initialized()
        if begun and _users and address != _address:
            raise EdBatchError(f"{place}: address: expected {_address!r}, which is in use, got {address!r}")
        if not ray().is_initialized():
            _begin(place, address, workers, store)
        _users, _address, _process = _users + begun, address, os.getpid()
    found = Cluster(place, own=begun and address is None, here=address is None)
    try:
        yield found
    finally:
        found.end()
        with _lock:
            _users -= begun
            if begun and not _users and _runs():
                ray().shutdown()


def _begin(place: str, address: str | None, workers: int, store: int) -> None:
    if address is not None and not _answers(address):  # Ray would ask for minutes
        raise EdBatchError(f"{place}: Ray at {address}: no answer; expected a running cluster")
    given: dict[str, Any] = {"address": address}
    if address is None:
        given = {"num_cpus": workers, "object_store_memory": store, "include_dashboard": False}
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray().init(log_to_driver=False, logging_level=logging.CRITICAL, **given)
    except (Exception, SystemExit) as error:
        with suppress(Exception):
            ray().shutdown()
        raise EdBatchError(
            f"{place}: Ray at {address or 'this machine'}: {error}; expected a running cluster"
        ) from None
    finally:
        for name in ENVIRONMENT:
            del os.environ[name]
        os.environ.update(before)


def _answers(address: str) -> bool:
    """Whether somebody answers at `host:port` or `ray://host:port`; what else Ray takes it knows itself."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return True
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5):
            return True
    except OSError:
        return False


def _reason(error: BaseException) -> str:
    """One line: that there was no memory, where it is said, or else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "memory" in line.lower()]
    return f"{type(error).__name__}: {(told or lines or [''])[0][:400]}"
