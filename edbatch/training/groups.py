"""What an optimizer updates: a model, a part of one, or groups of parameters with hyper-parameters of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edbatch.errors import EdBatchError, missing_memory, shown
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.parameters import Parameter

Parameters = ParameterCollection | Parameter | Iterable[Parameter | ParameterCollection]
Group = dict[str, Any]  # "params", and hyper-parameters by name, as in PyTorch
Trained = Parameters | Iterable[Mapping[str, Any]]


def groups_of(place: str, given: Any, allowed: Iterable[str]) -> list[Group]:
    """The groups that an optimizer was given; one without hyper-parameters if it was given parameters.

    Args:
        place: what error messages begin with.
        given: see `Trained`; collections may grow later.
        allowed: names of hyper-parameters that a group may set.

    Raises:
        EdBatchError: there are no parameters, or a group sets what it cannot.
    """
    whole = isinstance(given, ParameterCollection | Parameter)
    listed = _listed(place, given)
    if listed and all(isinstance(group, Mapping) for group in listed):
        groups = [{**group} for group in listed]
    else:
        groups = [{"params": given if whole else listed}]
    for number, group in enumerate(groups):
        if unknown := group.keys() - {"params", *allowed}:
            known = ", ".join(allowed)
            raise EdBatchError(
                f"{place}: group {number} sets {', '.join(sorted(map(repr, unknown)))}; expected {known}"
            )
        params = group.get("params", ())
        members = _listed(place, params)
        if not isinstance(params, ParameterCollection | Parameter):  # a collection may grow
            group["params"] = members
        if not all(isinstance(one, ParameterCollection | Parameter) for one in members) or not parameters_of(group):
            raise EdBatchError(f"{place}: expected a model with parameters, got {shown(given)}")
    return groups


def _listed(place: str, given: Any) -> list[Any]:
    """What is given, in a list: a generator can be read once only."""
    try:
        return [given] if isinstance(given, ParameterCollection | Parameter) else list(given)
    except TypeError:
        return [given]
    except MemoryError:
        raise missing_memory(place, given) from None


def parameters_of(group: Group) -> list[Parameter]:
    """The parameters that are in a group now."""
    params = group["params"]
    if isinstance(params, Parameter):
        return [params]
    if isinstance(params, ParameterCollection):
        return [*params]
    return [one for part in params for one in parameters_of({"params": part})]


def group_of_each(place: str, groups: Iterable[Iterable[Parameter]]) -> dict[Parameter, int]:
    """The number of the group that each parameter is in, given those of each.

    Raises:
        EdBatchError: a parameter is in two, or parameters are on several devices.
    """
    found: dict[Parameter, int] = {}
    for number, group in enumerate(groups):
        for parameter in group:
            if found.setdefault(parameter, number) != number:
                raise EdBatchError(
                    f"{place}: {parameter!r} is in group {found[parameter]} and in group {number}; expected it in one"
                )
    if len({parameter.device for parameter in found}) > 1:
        devices = sorted({parameter.device.name for parameter in found})
        raise EdBatchError(f"{place}: expected parameters on one device, got some on {' and '.join(devices)}")
    return found
