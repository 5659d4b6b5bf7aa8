"""Ray: begun for a while, or joined, and waited for, never for ever."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from edbatch.base.later import imported
from edbatch.base.numbers import checked_real
from edbatch.errors import EdBatchError, shown

SLICE = 1.0  # seconds between looks at whether the head is there
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_looked = 0.0  # when the head was last seen
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_worker_niceness": "0",
}


class WorkerLost(Exception):
    """A worker is gone, or does not answer."""


@dataclass(frozen=True)
class Network:
    """What a reduction waits as if workers were on machines of their own: to see what a network would cost.

    Args:
        bytes_per_second: of one machine's connection, each way.
        latency: seconds from one machine to another.

    Raises:
        EdBatchError: one is no such number.

    Example:
        >>> Network(bytes_per_second=1.25e9, latency=1e-4).seconds(1_250_000)
        0.0011
    """

    bytes_per_second: float
    latency: float = 0.0

    def __post_init__(self) -> None:
        speed = checked_real("Network", "bytes_per_second", self.bytes_per_second)
        if not speed > 0:
            raise EdBatchError(f"Network: bytes_per_second: expected a positive number, got {speed}")
        checked_real("Network", "latency", self.latency)

    def seconds(self, size: int) -> float:
        """From sending so many bytes to having them."""
        return self.latency + size / self.bytes_per_second


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


@contextmanager
def cluster(place: str, address: str | None, workers: int, store: int) -> Iterator[None]:
    """Ray, begun here and ended after, or that of an address, or the one this program has begun.

    Args:
        place: for messages.
        address: of a cluster that runs; None: one of this machine's own.
        workers: processes that it must have place for.
        store: bytes of shared memory, where it is begun here.

    Raises:
        EdBatchError: there is none at the address, it has too few processors, or it cannot be begun.
    """
    found = ray()
    if address is not None and not isinstance(address, str):
        raise EdBatchError(f"{place}: address: expected text such as '10.0.0.1:6379', got {shown(address)}")
    begun = not found.is_initialized()
    with _quiet():
        if begun:
            _begin(found, place, address, workers, store)
        try:
            _check_size(found, place, workers)
            yield
        finally:
            if begun:
                found.shutdown()


def _check_size(found: Any, place: str, workers: int) -> None:
    processors = found.cluster_resources().get("CPU", 0)
    if processors < workers:
        raise EdBatchError(f"{place}: the cluster has {processors:g} processors; expected {workers}, or fewer workers")


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


def results(place: str, refs: Sequence[Any], timeout: float) -> list[Any]:
    """What remote calls give, once all have ended.

    Raises:
        WorkerLost: one of them cannot end, or has not in so many seconds.
        EdBatchError: that one of them raised; or the cluster is gone.
    """
    global _looked
    found, deadline = ray(), monotonic() + timeout
    values: dict[Any, Any] = {}
    waiting = list(refs)
    while waiting:
        ready, waiting = found.wait(waiting, num_returns=len(waiting), timeout=SLICE)
        values |= {ref: _value(place, ref) for ref in ready}
        if monotonic() - _looked > SLICE:  # also while all goes well: a minute later Ray ends this process
            there, _looked = is_there(), monotonic()
            if not there:
                raise EdBatchError(f"{place}: the cluster's head is gone; expected it to run as long as this does")
        if waiting and monotonic() > deadline:
            raise WorkerLost(f"no answer in {timeout:g} s")
    return [values[ref] for ref in refs]


def _value(place: str, ref: Any) -> Any:
    exceptions = ray().exceptions
    try:
        return ray().get(ref, timeout=SLICE * 30)
    except exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, EdBatchError):
            raise cause from None
        if isinstance(cause, exceptions.RayError):
            raise WorkerLost(_first_line(cause)) from None
        raise EdBatchError(f"{place}: a worker raised {type(cause).__name__}: {cause}\n{error}") from None
    except exceptions.RayError as error:
        raise WorkerLost(_first_line(error)) from None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


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


def is_there() -> bool:
    """Whether the head answers, and knows a machine that is there: Ray waits a minute, and then ends the process."""
    if not answers(ray().get_runtime_context().gcs_address):
        return False
    return any(node["Alive"] for node in ray().nodes())
