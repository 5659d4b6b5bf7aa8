"""All workers: one step of all of them, and going on when one is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from edbatch.distributed.failures import unsendable
from edbatch.distributed.job import Done, Part, State
from edbatch.distributed.room import Room
from edbatch.distributed.waiting import WorkerLost, check_head, results
from edbatch.distributed.worker import Worker
from edbatch.errors import EdBatchError

AHEAD = 1  # steps that are sent before one is waited for, so that no worker waits for the driver
TO_ANSWER = 30.0  # seconds in which a worker that is there says how far it is


class Team:
    """Workers, as Ray's actors.

    What they send one another goes from worker to worker: the driver has references to results that are not there yet,
    and gives them to whoever needs them.

    Args:
        job: a reference to what all get.
        n: how many.
        room: for them.
        timeout: seconds that a step may take, code compiled in it included.
    """

    def __init__(self, job: Any, n: int, room: Room, timeout: float) -> None:
        self._job, self._n, self._room, self._timeout = job, n, room, timeout
        self._workers = [self._new(number) for number in range(n)]
        self.processes: list[int] = []  # of the workers, on whatever machine

    def begin(self, state: Any, step: int) -> None:
        """Have all go on from a state.

        Raises:
            WorkerLost: one of them is not there, or did not come.
            EdBatchError: what they get cannot be made again in another process; or there is no room for them.
        """
        self._room.check()  # a machine may be gone
        self.processes[:] = self._all([worker.ready.remote() for worker in self._workers])
        self._all([worker.begin.remote(state, step) for worker in self._workers])

    def steps(self, parts: Iterator[list[Part]], step: int) -> Iterator[list[Done]]:
        """Do mini-batches, of which each worker has a part; what all say of each, when it is done.

        Raises:
            WorkerLost: one of them is gone, or hangs.
            EdBatchError: what one of them raised.
        """
        waiting: list[tuple[list[Any], list[Any]]] = []
        recorded = self._record(next(parts, None), step)
        while recorded:
            step += 1
            pieces = [self._called(worker.gradients, self._n) for worker in self._workers]
            before, recorded = recorded, self._record(next(parts, None), step)  # while others compute
            sums = [
                worker.reduce.remote(*(of_one[owner] for of_one in pieces))
                for owner, worker in enumerate(self._workers)
            ]
            waiting.append((before, [worker.update.remote(*sums) for worker in self._workers]))
            if len(waiting) > AHEAD:
                yield self._waited(*waiting.pop(0))
        for one in waiting:
            yield self._waited(*one)

    def count(self, numbers: Sequence[int]) -> list[int]:
        """The sizes of samples, by their numbers; each worker counts some, always the same.

        Raises:
            WorkerLost: one of them is gone, or hangs.
            EdBatchError: what one of them raised.
        """
        shares = [[number for number in numbers if number % self._n == at] for at in range(self._n)]
        refs = [worker.count.remote(share) for worker, share in zip(self._workers, shares, strict=True)]
        sizes = {
            number: size
            for share, found in zip(shares, self._all(refs), strict=True)
            for number, size in zip(share, found, strict=True)
        }
        return [sizes[number] for number in numbers]

    def state(self) -> State:
        """Of the first worker, as of all."""
        return self._all([self._workers[0].state.remote()])[0]

    def recover(self) -> tuple[int, dict[int, float], Any] | None:
        """Put others in the place of the workers that are gone or hang.

        Returns:
            Of those that are left: how many steps the one that is farthest has done, the losses of the last, and a
            reference to its state; None: none is left.
        """
        asked = [worker.standing.remote() for worker in self._workers]
        found = []
        for number, ref in enumerate(asked):
            worker = self._workers[number]
            try:
                found.append((*results("train", [ref], min(self._timeout, TO_ANSWER))[0], worker))
            except (WorkerLost, EdBatchError):
                self._room.end([worker])
                self._workers[number] = self._new(number)
        if not found:
            return None
        step, losses, worker = max(found, key=lambda one: one[0])
        return step, losses, worker.state.remote()

    def close(self) -> None:
        """End all."""
        self._room.end(self._workers)

    def _new(self, number: int) -> Any:
        return self._room.new(Worker, self._job, number, self._n)

    def _record(self, parts: Sequence[Part] | None, step: int) -> list[Any]:
        if parts is None:
            return []
        check_head("train")
        try:
            return [worker.record.remote(part, step) for worker, part in zip(self._workers, parts, strict=True)]
        except Exception as error:  # of pickling
            named = ((f"sample {x}", y) for of in parts for x, y in zip(of.numbers, of.samples or [], strict=False))
            raise unsendable("train", named, error) from error

    @staticmethod
    def _called(method: Any, n: int) -> list[Any]:
        found = method.options(num_returns=n).remote()
        return found if n > 1 else [found]

    def _waited(self, recorded: list[Any], updated: list[Any]) -> list[Done]:
        return self._all(recorded + updated)[len(recorded) :]

    def _all(self, refs: list[Any]) -> list[Any]:
        return results("train", refs, self._timeout)
