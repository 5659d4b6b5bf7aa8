"""CUDA graphs of mini-batches that come again: the whole of one is enqueued by one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from threading import Lock

from edbatch.base.locking import signals_deferred
from edbatch.kernels.cuda.cupy_driver import CuPyDriver, CuPyRecording

#: Comings at which a mini-batch is recorded: one that comes twice, forward and for its accuracy say, is not yet served.
TIMES = 3
KEYS = 1 << 14  # whose comings are counted


class Recordings:
    """Recordings by what they depend on; made when something comes for the third time.

    What comes once (a mini-batch of trees that no other is like) costs only the look-up. Where there is no room for
    another, the one that was used longest ago goes, if the new one came since (the rule of LRU-2): of more mini-batches
    than there is room for that come in turns, some stay recorded, instead of each in its turn. While `capacity` more
    were recorded of late than runs were served, none is.

    Args:
        driver: records.
        capacity: recordings kept.

    Attributes:
        recorded, replayed, dropped: how often that happened.
    """

    def __init__(self, driver: CuPyDriver, capacity: int = 128) -> None:
        self._driver = driver
        self._capacity = capacity
        self._lock = Lock()  # CUDA lets one thread at a time use a graph
        self._came: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # how often, and at which run the last time
        self._kept: OrderedDict[bytes, tuple[CuPyRecording, int]] = OrderedDict()  # with the run that it served last
        self._runs = count()
        self._unserved = 0  # recordings, less the runs served since
        self.recorded = self.replayed = self.dropped = 0

    def run(self, key: bytes, enqueue: Callable[[CuPyRecording | None], None]) -> None:
        """Have done what `enqueue` enqueues, which is the same for equal keys.

        It is given the recording that it is to enqueue to; None: it is to enqueue what runs at once.
        """
        with self._lock:
            self._run(key, enqueue, next(self._runs))

    def _run(self, key: bytes, enqueue: Callable[[CuPyRecording | None], None], now: int) -> None:
        if now % (32 * self._capacity) == 0:
            self._unserved //= 2  # what did not pay long ago may pay now
        found, _ = self._kept.pop(key, (None, 0))
        if found is not None:
            self._kept[key] = found, now
            self.replayed += 1
            self._unserved = max(0, self._unserved - 1)
            found.launch()
        elif self._pays(key, now):
            with signals_deferred(), self._driver.capture() as recording:
                enqueue(recording)
            self._keep(key, recording, now)
            recording.launch()
        else:
            enqueue(None)

    def _pays(self, key: bytes, now: int) -> bool:
        """Count a coming; whether a recording of it is likely to serve more than the one that would go."""
        times, before = self._came.pop(key, (0, 0))
        self._came[key] = times + 1, now
        if len(self._came) > KEYS:
            self._came.popitem(last=False)
        if times + 1 < TIMES or self._unserved >= self._capacity:
            return False
        return len(self._kept) < self._capacity or before > next(iter(self._kept.values()))[1]

    def _keep(self, key: bytes, recording: CuPyRecording, now: int) -> None:
        self._kept[key] = recording, now
        self.recorded += 1
        self._unserved += 1
        if len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
            self.dropped += 1
