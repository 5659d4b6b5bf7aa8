"""Experiments, point by point."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from tqdm import tqdm

import edbatch as eb
from edbatch.compiling.compiled import at_once
from edbatch.experiments.experiment import Experiment, Row, Setting
from edbatch.experiments.saved import Results
from edbatch.runtime.remembered import afresh


@contextmanager
def _no_old_garbage() -> Iterator[None]:
    """Garbage, which is collected before each run that is timed, is looked for among what the block makes.

    Among all that is compiled and imported it takes longer than most runs.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def run(experiment: Experiment, setting: Setting, results: Results) -> list[Row]:
    """Measure the points of an experiment that were not measured yet, with one thread; all rows.

    What runs again and again stands for what is new, so plans of small graphs are not kept, and everything is compiled.

    Raises:
        EdBatchError: sides disagree in their numbers, data cannot be read, or results cannot be saved.
    """
    points = [point for point in experiment.points(setting) if not results.has(experiment.name, point)]
    with eb.options(threads=1), afresh(), at_once():
        bar = tqdm(points, desc=experiment.name, unit="point", delay=1, leave=False, disable=None)
        for point in bar:
            bar.set_postfix_str(" ".join(map(str, point.values())))
            start = perf_counter()
            with _no_old_garbage():
                rows = [{**point, **row} for row in experiment.measure(setting, point)]
            results.add(experiment, point, rows, round(perf_counter() - start, 3))
    return results.rows(experiment.name)
