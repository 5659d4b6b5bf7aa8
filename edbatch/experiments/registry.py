"""Experiments by name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from edbatch.errors import EdBatchError, shown
from edbatch.experiments import of_papers
from edbatch.experiments.experiment import Experiment


@cache
def experiments() -> dict[str, Experiment]:
    """All, by paper and name.

    Example:
        >>> experiments()["batches"].place
        'figure 9'
    """
    modules = [import_module(f"{of_papers.__name__}.{module.name}") for module in iter_modules(of_papers.__path__)]
    found: list[Experiment] = [module.EXPERIMENT for module in modules if hasattr(module, "EXPERIMENT")]
    return {one.name: one for one in sorted(found, key=lambda one: (one.paper.where, one.name))}


def get_experiment(name: str) -> Experiment:
    """The experiment of this name.

    Raises:
        EdBatchError: there is none.
    """
    try:
        return experiments()[name]
    except KeyError:
        known = ", ".join(experiments())
        raise EdBatchError(f"no experiment is named {shown(name)}; expected all or one of {known}") from None
