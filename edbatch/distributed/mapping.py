"""`map`: programs over values on several workers, results in the order of the samples, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from edbatch.base.lazy import LazyModule
from edbatch.base.numbers import checked_integer
from edbatch.distributed.cluster import WorkerLost, checked, cluster
from edbatch.distributed.failures import RAISED, failed, for_another_process, made_again, unreadable, unsendable
from edbatch.errors import EdBatchError, checked_flag, shown
from edbatch.graph.expression import Expression
from edbatch.graph.options import options
from edbatch.runtime.programs.requests import close
from edbatch.runtime.programs.run import run

cloudpickle = LazyModule("ray.cloudpickle")
tqdm = LazyModule("tqdm")

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
    `edbatch.run` does, in evaluation (`dropout` does nothing). Samples are read when a worker is free: twice `batch`
    for each worker are in memory, and their results. A group whose worker is lost is given to another.

    Args:
        program: from a sample what `run` takes, a coroutine or generator; what that returns is sent back: values.
        samples: in any iterable.
        workers: processes that compute.
        batch: samples of a group, which run together.
        address: of a Ray cluster, see `train`.
        timeout: seconds that a group may take; the first compiles.
        progress: show a bar.

    Raises:
        EdBatchError: an argument is out of range, Ray is not installed or cannot be begun, too few processors are free,
            the program cannot be pickled, raises (it names the sample), or loses its workers again and again.

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
    size = checked_integer("map", "batch", batch)
    quiet = not checked_flag("map: progress", progress)
    n, seconds = checked("map", workers, timeout)
    return _Mapping(program, n, size, seconds).over(samples, address, quiet)


@dataclass
class _Group:
    """Samples that run together; `first` is the number of the first."""

    first: int
    samples: list[Any]
    worker: int
    ref: Any
    attempts: int = 1


class _Mapping:
    """Groups of samples in flight, in order; a worker has the next group when its first is done."""

    def __init__(self, program: Callable[[Any], Any], n: int, size: int, timeout: float) -> None:
        self._program, self._n, self._size, self._timeout = program, n, size, timeout
        self._flying: deque[_Group] = deque()
        self._workers: list[Any] = []
        self._unread: EdBatchError | None = None

    def over(self, samples: Iterable[Any], address: str | None, quiet: bool) -> Generator[Any]:
        """The results."""
        total = len(samples) if isinstance(samples, Sized) else None
        with (
            cluster("map", address, self._n, STORE) as self._cluster,
            tqdm.tqdm(total=total, unit="sample", disable=quiet) as bar,
        ):
            given = self._program, self._cluster.options(self._n) | {"training": False}
            self._job = self._cluster.put(given, {"program": self._program})
            self._workers = self._cluster.new(self._n, Mapper, self._job)
            for found in self._groups(iter(samples)):
                bar.update(len(found))
                yield from found

    def _groups(self, samples: Iterator[Any]) -> Iterator[list[Any]]:
        first, numbers = 0, count()
        while self._unread is None and (chosen := self._read(samples, first)):
            worker = next(numbers) % self._n
            self._flying.append(_Group(first, chosen, worker, self._asked(worker, first, chosen)))
            first += len(chosen)
            if len(self._flying) == AHEAD * self._n:
                yield self._waited()
        while self._flying:
            yield self._waited()
        if self._unread is not None:  # what was read before has its results
            raise self._unread

    def _read(self, samples: Iterator[Any], first: int) -> list[Any]:
        """The next samples, up to one that cannot be read."""
        chosen: list[Any] = []
        try:
            chosen.extend(islice(samples, self._size))
        except Exception as error:
            self._unread = unreadable("map", first + len(chosen), error)
        return chosen

    def _asked(self, worker: int, first: int, samples: list[Any]) -> Any:
        self._cluster.check()
        try:
            return self._workers[worker].run.remote(first, samples)
        except Exception as error:  # of pickling
            named = ((f"sample {number}", sample) for number, sample in enumerate(samples, start=first))
            raise unsendable("map", named, error) from error

    def _waited(self) -> list[Any]:
        """The results of the first group."""
        group = self._flying[0]
        while True:
            try:
                [found] = self._cluster.results([group.ref], self._timeout)
                self._flying.popleft()
                return found
            except WorkerLost as lost:
                if group.attempts >= ATTEMPTS:
                    raise EdBatchError(
                        f"map: a worker was lost {ATTEMPTS} times with samples {group.first} to "
                        f"{group.first + len(group.samples) - 1} ({lost})"
                    ) from None
                group.attempts += 1
                self._replace(group.worker)

    def _replace(self, number: int) -> None:
        """Have another worker do what one was to do."""
        self._cluster.end([self._workers[number]])
        [self._workers[number]] = self._cluster.new(1, Mapper, self._job)
        for group in self._flying:
            if group.worker == number:
                group.ref = self._asked(number, group.first, group.samples)


class Mapper:
    """One worker: runs groups of samples by a program, under options, which it gets pickled."""

    def __init__(self, job: bytes) -> None:
        self._job: Any = job

    @for_another_process
    def run(self, first: int, samples: list[Any]) -> list[Any]:
        """What the programs of samples return, the first of which has this number; an `EdBatchError` names one."""
        if isinstance(self._job, bytes):
            self._job = made_again("map", self._job)
        program, given = self._job
        begun: list[Any] = []
        try:
            begun.extend(program(sample) for sample in samples)
        except Exception as error:
            close(begun)
            raise failed(_of(first + len(begun)), error) from error
        try:
            with options(**given):
                found = run(begun, return_exceptions=True)
        except RAISED as error:
            raise failed(f"map: the programs of samples {first} to {first + len(samples) - 1}", error) from error
        for number, result in enumerate(found, start=first):
            if isinstance(result, Exception):
                raise failed(_of(number), result) from result
            if isinstance(result, Expression):
                raise EdBatchError(f"{_of(number)}: expected values, got an expression; write `return await x`")
        try:
            cloudpickle.dumps(found, protocol=5, buffer_callback=[].append)  # arrays are not copied
        except Exception as error:
            named = ((f"what the program of sample {number} returned", x) for number, x in enumerate(found, first))
            raise unsendable("map", named, error) from None
        return found


def _of(number: int) -> str:
    return f"map: the program of sample {number}"
