"""What an update goes through: the same at each, as long as the same parameters have gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edbatch.graph.model.parameters import Parameter
from edbatch.training.storage import by_storage, is_whole

Key = tuple[list[int], list[Parameter]]


class Due:
    """The parameters that have gradients, by what is done to them.

    Args:
        parameters: these.
        key: of each the number of its group, and the owner of its storage.
        updates: of each, if it had some.

    Attributes:
        measured: whose gradients together are those of all.
        alike: one for all that are updated with the same constants, and the number of their group.
        applied: owners, themselves or a part of each, and the one whose constants are taken: storages are updated as a
            whole where all their members are, and alike.
        owners: of the storages.

    Example:
        >>> import edbatch as eb
        >>> W, b = list(eb.ParameterCollection().add_parameters(2, name=name) for name in "Wb")
        >>> due = Due([W, b], ([0, 1], [W, b]), {})
        >>> due.measured == [W, b], due.applied == [(W, W, W), (b, b, b)]
        (True, True)
    """

    def __init__(self, parameters: Sequence[Parameter], key: Key, updates: Mapping[Parameter, int]) -> None:
        self.parameters, self.key = parameters, key
        storages = by_storage(parameters)
        ways = {x: (group, updates.get(x, 0), x.dtype) for x, group in zip(parameters, key[0], strict=True)}
        one_of = {way: x for x, way in ways.items()}
        self.alike = {one: way[0] for way, one in one_of.items()}
        self.owners = list(storages)
        self.measured: list[Parameter] = []
        self.applied: list[tuple[Parameter, Parameter, Parameter]] = []
        for owner, members in storages.items():
            whole = is_whole(owner, members)
            self.measured += [owner] if whole else members
            alike = {ways[x] for x in members}
            chosen = [(owner, members[0])] if whole and len(alike) == 1 else [(x, x) for x in members]
            self.applied += [(owner, x, one_of[ways[member]]) for x, member in chosen]
