"""The threads that share what a CPU computes: they are Python's, and wait inside compiled code, without Python's lock.

There is one pool in a process. Graphs run one at a time, so it is asked by one thread at a time. It is made when the
process has had so much work for it that it pays, or when somebody asks for threads by number.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from functools import cache
from typing import Any

import numpy as np

from edbatch.base.context_stack import leaving
from edbatch.base.locking import signals_deferred
from edbatch.kernels.cpu import blas_threads, cores
from edbatch.kernels.cpu.products import gemms, most_small
from edbatch.kernels.cpu.shared_jobs import (
    ACQUIRE,
    ALONE,
    CLOCK,
    CLOCK_KIND,
    JUDGED,
    LIMIT,
    LINE,
    MOST,
    RELEASE,
    SHARED,
    STOP,
    TAKEN,
    THREADS,
    UNTIL,
    WANTED,
    attend,
)

ROOM = 64  # for so many threads
WORTH = 1000  # jobs that were done alone before there is a pool: some 50 ms of work


@cache
def device() -> np.ndarray:
    """The table of the CPU that compiled loops are given: addresses of `sgemm` and `dgemm`, and see `shared_jobs`."""
    return np.append(gemms(), [0, 0, most_small()])


class Pool:
    """Threads that attend to the same words; the one that asks counts as the first.

    Attributes:
        address: of the words; see `shared_jobs`.
        threads: how many there are.
    """

    def __init__(self) -> None:
        memory = np.zeros(THREADS + LINE * (ROOM + 1), np.uint8)
        begin = -memory.ctypes.data % LINE
        self._words = memory[begin : begin + THREADS + LINE * ROOM].view(np.int64)
        self.address, self.threads = self._words.ctypes.data, 1
        self._started: list[threading.Thread] = []
        self._python = ctypes.pythonapi
        self._python.PyThread_allocate_lock.restype = ctypes.c_void_p
        for word, function in (
            (ACQUIRE, self._python.PyThread_acquire_lock),
            (RELEASE, self._python.PyThread_release_lock),
            (CLOCK, ctypes.CDLL(None).clock_gettime),
        ):
            self._put(word, ctypes.cast(function, ctypes.c_void_p).value)
        self._put(CLOCK_KIND, time.CLOCK_MONOTONIC)
        self._put(JUDGED, 1)
        self._put(STOP, 1)
        attend(self.address, 0)  # compiled, or loaded, here and not in threads
        self._put(STOP, 0)

    def _put(self, word: int, value: Any) -> None:
        self._words[word // 8] = value

    def get(self, word: int) -> int:
        """One of the words."""
        return self._words.item(word // 8)

    def lend(self, threads: int) -> None:
        """Have so many threads take part in what follows."""
        if threads == self.get(MOST):
            return
        while self.threads < threads:
            lock = ctypes.c_void_p(self._python.PyThread_allocate_lock())
            self._python.PyThread_acquire_lock(lock, 1)
            self._put(THREADS + LINE * self.threads + 8, lock.value)
            name = f"edbatch-{self.threads}"
            thread = threading.Thread(target=attend, args=(self.address, self.threads), name=name, daemon=True)
            self.threads += 1
            self._started.append(thread)
            thread.start()
        for word, value in ((MOST, threads), (LIMIT, threads), (UNTIL, 0), (ALONE, 0), (TAKEN, 0)):
            self._put(word, value)

    def judged(self, judged: bool) -> None:
        """Whether threads are left out where they do not pay."""
        self._put(JUDGED, judged)

    def close(self) -> None:
        """End all threads, wherever they wait."""
        self._put(STOP, 1)
        for number in range(1, self.threads):
            lock = ctypes.c_void_p(self.get(THREADS + LINE * number + 8))
            self._python.PyThread_release_lock(lock)
        for thread in self._started:
            thread.join()


_pool: Pool | None = None
_default: int | None = None


def _forget() -> None:
    """A child of `os.fork` has one thread: it has no pool, and other processes to share cores with."""
    global _pool, _default
    _pool = _default = None
    if device.cache_info().currsize:
        device()[SHARED] = 0


def close() -> None:
    """End the threads, if there are any: before Python ends, since what they run would be gone."""
    pool = _pool
    if pool is not None:
        _forget()
        pool.close()


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def number(threads: int) -> int:
    """How many threads may take part.

    Args:
        threads: that the options ask for; 0: as many as the environment says, or as there are cores.
    """
    global _default
    if not hasattr(time, "clock_gettime"):  # Windows
        return 1
    if threads:
        return min(threads, ROOM)
    if _default is None:
        _default = min(cores.asked(), ROOM) or cores.default()
    return _default


def borrowed_threads(threads: int) -> int:
    """The address of the words of a pool with so many threads; 0: there is none, or not yet."""
    global _pool
    most = number(threads)
    if most == 1:
        return 0
    if _pool is None:
        if not threads and device().item(WANTED) < WORTH:
            return 0
        with signals_deferred():  # or an interrupt would leave threads that nobody ends
            _pool = Pool()
    if _pool.get(MOST) != most:
        with signals_deferred():
            _pool.lend(most)
    return _pool.address


def said(threads: int) -> str:
    """How many threads took part last, for a report; `threads`: that were asked for."""
    most = number(threads)
    if most == 1:
        return "1"
    if _pool is None:
        return f"1 of {most} (too little for more so far)"
    now = max(1, min(most, _pool.get(LIMIT)))
    return f"{now} of {most}" + (" (more do not pay: others use the cores)" if now < most else "")


class Computing:
    """In its block, BLAS computes with one thread, and what is large is shared by the threads of the pool.

    Blocks of two threads must not overlap: graphs run one at a time, see `edbatch.base.locking`.

    Args:
        threads: see `number`.
    """

    __slots__ = ("_before", "_changed", "_threads")

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        table = device()
        self._before = table.item(SHARED)
        self._changed = [(control, n) for control in blas_threads.controls() if (n := control.get()) != 1]
        try:
            for control, _ in self._changed:
                control.set(1)
            table[SHARED] = borrowed_threads(self._threads)
        except BaseException:
            self.__exit__()
            raise

    @leaving
    def __exit__(self, *_: object) -> None:
        for control, n in self._changed:
            control.set(n)
        device()[SHARED] = self._before
