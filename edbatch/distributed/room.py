"""Room for workers: processors of a cluster, all of them or none, so that nobody waits for others in silence."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import count
from time import monotonic, sleep
from typing import Any

from edbatch.base.later import Later
from edbatch.distributed.ray import ray, runs
from edbatch.distributed.waiting import check_head
from edbatch.errors import EdBatchError

groups = Later("ray.util.placement_group")
strategies = Later("ray.util.scheduling_strategies")

PATIENCE = 10.0  # seconds in which others may end, and the processors of a machine that is gone be found elsewhere
LOOK = 0.05  # seconds
OURS = "edbatch"  # names of what this module holds begin with it
_numbers = count()


class Room:
    """Of a training, or a mapping.

    Where Ray was begun for this program, workers are processes like others, and the machine shares its processors among
    them: any number of trainings and mappings may run in turns. Of a cluster that others use too each worker has a
    processor; they are asked for together, so that two programs cannot each have half of what they need.

    Args:
        place: for messages.
        n: workers.
        shared: whether the cluster is of others, too.
    """

    def __init__(self, place: str, n: int, shared: bool) -> None:
        self._place, self._n = place, n
        self._group: Any = None
        if shared:
            self._check_size()
            name = f"{OURS}: {place}, process {os.getpid()} on {socket.gethostname()}, {next(_numbers)}"
            self._group = groups.placement_group([{"CPU": 1}] * n, name=name)

    def check(self) -> None:
        """That workers can begin.

        Raises:
            EdBatchError: others have the processors; it names them.
        """
        if self._group is None:
            return
        deadline = monotonic() + PATIENCE
        while groups.placement_group_table(self._group)["state"] != "CREATED":
            check_head(self._place)
            if monotonic() > deadline:
                self._check_size()
                total = ray().cluster_resources().get("CPU", 0)
                free = ray().available_resources().get("CPU", 0)
                raise EdBatchError(
                    f"{self._place}: {self._n} of the cluster's {total:g} processors are needed, and {free:g} are free "
                    f"({self._holders(total - free)}); expected fewer workers, or to begin after others have ended"
                )
            sleep(LOOK)

    def new(self, kind: type, *arguments: Any) -> Any:
        """A worker, of a class."""
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0}
        if self._group is not None:
            strategy = strategies.PlacementGroupSchedulingStrategy(self._group)
            options |= {"num_cpus": 1, "scheduling_strategy": strategy}
        return ray().remote(kind).options(**options).remote(*arguments)

    def end(self, workers: list[Any]) -> None:
        """End workers."""
        for worker in workers:
            if runs():
                with suppress(Exception):
                    ray().kill(worker)

    def leave(self) -> None:
        """Give the processors back."""
        if self._group is not None and runs():
            with suppress(Exception):
                groups.remove_placement_group(self._group)

    def _check_size(self) -> None:
        processors = ray().cluster_resources().get("CPU", 0)
        if processors < self._n:
            raise EdBatchError(
                f"{self._place}: the cluster has {processors:g} processors; expected {self._n}, or fewer workers"
            )

    def _holders(self, held: float) -> str:
        """Who has so many processors."""
        known: list[tuple[str, float]] = []
        for group in groups.placement_group_table().values():
            mine, _, name = group["name"].partition(": ")
            if mine == OURS and group["state"] == "CREATED":
                known.append((name.rpartition(",")[0], len(group["bundles"])))
        others = held - sum(n for _, n in known)
        if others > 0:
            known.append(("other programs of Ray's", others))
        return "; ".join(f"{name}: {n:g}" for name, n in known) or "its machines are gone"
