"""CUDA graphs of mini-batches that come again: the whole of one is enqueued by one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from edbatch.base.exclusive import Whole
from edbatch.errors import warn
from edbatch.kernels.cuda.driver import Driver, Recording


class Recordings:
    """Recordings by what they depend on, those used last; made when something comes for the second time.

    What comes once (a mini-batch of trees that no other is like) costs only the look-up.

    Args:
        driver: records.
        capacity: recordings kept.

    Attributes:
        recorded, replayed, dropped: how often that happened.
    """

    def __init__(self, driver: Driver, capacity: int = 32) -> None:
        self._driver = driver
        self._capacity = capacity
        self._lock = Lock()  # CUDA lets one thread at a time use a graph
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._kept: OrderedDict[bytes, Recording] = OrderedDict()
        self.recorded = self.replayed = self.dropped = 0
        self._before = 0, 0  # recorded and replayed when it was last looked whether that pays

    def run(self, key: bytes, enqueue: Callable[[Recording | None], None]) -> None:
        """Have done what `enqueue` enqueues, which is the same for equal keys.

        It is given the recording that it is to enqueue to; None: it is to enqueue what runs at once.

        Warns when recordings are dropped as often as they are made and seldom used: recording costs more than it saves.
        """
        with self._lock:
            self._run(key, enqueue)

    def _run(self, key: bytes, enqueue: Callable[[Recording | None], None]) -> None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            self.replayed += 1
            found.launch()
        elif key not in self._seen:
            enqueue(None)
            self._remember(key)
        else:
            with Whole(), self._driver.capture() as recording:
                enqueue(recording)
            self._keep(key, recording)
            recording.launch()

    def _remember(self, key: bytes) -> None:
        self._seen[key] = None
        if len(self._seen) > 8 * self._capacity:
            self._seen.popitem(last=False)

    def _keep(self, key: bytes, recording: Recording) -> None:
        self._kept[key] = recording
        self.recorded += 1
        if len(self._kept) <= self._capacity:
            return
        self._kept.popitem(last=False)
        self.dropped += 1
        if self.dropped % self._capacity:
            return
        recorded, replayed = self.recorded - self._before[0], self.replayed - self._before[1]
        self._before = self.recorded, self.replayed
        if replayed < recorded:
            warn(
                f"{self._driver.name}: {recorded} CUDA graphs were recorded of late, {self._capacity} dropped and "
                f"{replayed} runs served by one; recording costs more than it saves here: switch it off with "
                "eb.options(record=False)"
            )
