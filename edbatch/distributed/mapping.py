"""`map`: programs over values on several workers, results in the order of the samples, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from edbatch.base.later import Later
from edbatch.base.numbers import checked_integer, is_real
from edbatch.distributed.cluster import cluster
from edbatch.distributed.failures import unsendable
from edbatch.distributed.mapper import Mapper
from edbatch.distributed.ray import ray
from edbatch.distributed.waiting import WorkerLost, check_head, results
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.options import current_options
from edbatch.kernels.cpu import cores

cloudpickle = Later("ray.cloudpickle")
tqdm = Later("tqdm")

MOST = 1024  # workers
AHEAD = 2  # groups of samples that each worker has, so that it waits for nobody
ATTEMPTS = 3  # at one group
STORE = 256 * 2**20  # bytes of shared memory


def map(
    program: Callable[[Any], Any],
    samples: Iterable[Any],
    workers: int = 2,
    *,
    batch: int = 64,
    address: str | None = None,
    timeout: float = 300.0,
    progress: bool = False,
) -> Iterator[Any]:
    """What programs return, of all samples in their order, computed by several workers.

    Each worker gets the program once, with the model that it refers to, and then groups of samples, which it runs as
    `edbatch.run` does, in evaluation (`dropout` does nothing). Samples are read when a worker is free, results are
    given as soon as those before are: so many samples as workers have (twice `batch` each) are in memory, and the
    results that wait for one before them, of as many. A group whose worker is lost is given to another.

    Args:
        program: called with a sample, as by `edbatch.serving.Batcher`: returns a coroutine or generator that `run`
            takes. What that returns is sent back: values, no expressions.
        samples: in any iterable.
        workers: processes that compute.
        batch: samples of a group, which run together.
        address: of a Ray cluster, see `train`.
        timeout: seconds that a group may take; the first compiles.
        progress: show a bar.

    Raises:
        EdBatchError: an argument is out of range, Ray is not installed or cannot be begun, the program cannot be
            pickled, raises (it names the sample), or loses its workers again and again.

    Example:
        >>> import edbatch as eb
        >>> eb.distributed.map("tag", [1, 2])
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: map: program: expected a function of a sample, got 'tag'
    """
    if not callable(program):
        raise EdBatchError(f"map: program: expected a function of a sample, got {shown(program)}")
    if not isinstance(samples, Iterable) or isinstance(samples, str | bytes):
        raise EdBatchError(f"map: samples: expected samples, in a list or any iterable, got {shown(samples)}")
    if not is_real(timeout) or not timeout > 0:
        raise EdBatchError(f"map: timeout: expected seconds, got {shown(timeout)}")
    n = checked_integer("map", "workers", workers, most=MOST)
    size = checked_integer("map", "batch", batch)
    quiet = not checked_flag("map: progress", progress)
    ray()
    return _Mapping(program, n, size, float(timeout)).over(samples, address, quiet)


@dataclass
class _Group:
    """Samples that run together; `first` is the number of the first."""

    first: int
    samples: list[Any]
    worker: int
    ref: Any
    attempts: int = 1


class _Mapping:
    """Groups of samples in flight, in order."""

    def __init__(self, program: Callable[[Any], Any], n: int, size: int, timeout: float) -> None:
        self._program, self._n, self._size, self._timeout = program, n, size, timeout
        self._workers: list[Any] = []
        self._flying: deque[_Group] = deque()
        self._unread: EdBatchError | None = None

    def over(self, samples: Iterable[Any], address: str | None, quiet: bool) -> Generator[Any]:
        """The results."""
        total = len(samples) if isinstance(samples, Sized) else None
        given, first = iter(samples), 0
        with ExitStack() as opened:
            self._room = opened.enter_context(cluster("map", address, self._n, STORE))
            opened.callback(self._end)
            bar = opened.enter_context(tqdm.tqdm(total=total, unit="sample", disable=quiet))
            self._job = self._sent(address is None)
            self._workers = [self._new() for _ in range(self._n)]
            ended = False
            while self._flying or not ended:
                while not ended and len(self._flying) < AHEAD * self._n:
                    chosen = self._read(given, first)
                    ended = not chosen or self._unread is not None
                    if chosen:
                        worker = self._freest()
                        self._flying.append(_Group(first, chosen, worker, self._asked(worker, first, chosen)))
                        first += len(chosen)
                if self._flying:
                    found = self._waited(self._flying[0])
                    self._flying.popleft()
                    bar.update(len(found))
                    yield from found
            if self._unread is not None:  # what was read before has its results
                raise self._unread

    def _sent(self, here: bool) -> Any:
        options = asdict(current_options()) | {"training": False}
        if not options["threads"] and not cores.asked() and here:
            options["threads"] = max(1, cores.available() // self._n)
        try:
            return ray().put(cloudpickle.dumps((self._program, options)))
        except Exception as error:
            raise unsendable("map", [("the program, with all that it refers to,", self._program)], error) from error

    def _read(self, given: Iterator[Any], first: int) -> list[Any]:
        """The next samples, up to one that cannot be read."""
        chosen: list[Any] = []
        try:
            chosen.extend(islice(given, self._size))
        except Exception as error:
            at = first + len(chosen)
            self._unread = EdBatchError(f"map: sample {at} cannot be read ({type(error).__name__}: {error})")
            self._unread.__cause__ = error
        return chosen

    def _freest(self) -> int:
        """The worker that has the fewest groups."""
        has = [sum(group.worker == worker for group in self._flying) for worker in range(self._n)]
        return has.index(min(has))

    def _asked(self, worker: int, first: int, samples: list[Any]) -> Any:
        check_head("map")
        try:
            return self._workers[worker].run.remote(first, samples)
        except Exception as error:  # of pickling
            named = ((f"sample {number}", sample) for number, sample in enumerate(samples, start=first))
            raise unsendable("map", named, error) from error

    def _waited(self, group: _Group) -> list[Any]:
        while True:
            try:
                return results("map", [group.ref], self._timeout)[0]
            except WorkerLost as lost:
                last = group.first + len(group.samples) - 1
                if group.attempts >= ATTEMPTS:
                    raise EdBatchError(
                        f"map: {ATTEMPTS} times a worker was lost with samples {group.first} to {last} ({lost})"
                    ) from None
                group.attempts += 1
                self._replace(group.worker)

    def _replace(self, number: int) -> None:
        """Another worker does what one was to do."""
        self._room.end([self._workers[number]])
        self._room.check()  # a machine may be gone
        self._workers[number] = self._new()
        for group in self._flying:
            if group.worker == number:
                group.ref = self._asked(number, group.first, group.samples)

    def _new(self) -> Any:
        return self._room.new(Mapper, self._job)

    def _end(self) -> None:
        self._room.end(self._workers)
