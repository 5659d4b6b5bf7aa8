"""What an update goes through: the same at each, as long as the same parameters have gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edbatch.base.locking import signals_deferred
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.training.arrays import gradient_of, is_copied, norm, sent
from edbatch.training.storage import Storage, by_storage, is_whole


class Due:
    """The parameters that have gradients, by what is done to them, and where their gradients are.

    Attributes:
        alike: one for all that are updated with the same constants, and the number of their group.
        applied: owners, themselves or a part of each, and the one whose constants are taken: storages are updated as a
            whole where all their members are, and alike.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        group_of: Mapping[Parameter, int],
        updates: Mapping[Parameter, int],
        storage: Callable[[Parameter], Storage],
    ) -> None:
        self.parameters, self._group_of = parameters, group_of
        self._stacks = [x.stack for x in parameters]
        ways = {x: (group_of[x], updates.get(x, 0), x.dtype) for x in parameters}
        one_of = {way: x for x, way in ways.items()}
        self.alike = {one: way[0] for way, one in one_of.items()}
        measured: list[Parameter] = []
        self.applied: list[tuple[Parameter, Parameter, Parameter]] = []
        for owner, members in by_storage(parameters).items():
            whole = is_whole(owner, members)
            measured += [owner] if whole else members
            alike = {ways[x] for x in members}
            chosen = [(owner, members[0])] if whole and len(alike) == 1 else [(x, x) for x in members]
            self.applied += [(owner, x, one_of[ways[member]]) for x, member in chosen]
        self._backend = parameters[0].device.backend
        calls = [storage(owner).call(x) for owner, x, _ in self.applied]
        self._calls, self._handles = calls, self._backend.handles([call.kernel for call in calls])
        self._sent: dict[Parameter, tuple[list[float], Any]] = {}  # the constants of the last update
        # All but tables keep their gradients where they are; entries of a part of a stack are a copy, made each time.
        self._moving = [x for x in measured if isinstance(x, LookupParameters) or is_copied(x.gradient_array())]
        self._places = [
            (owner, owner.array, None if isinstance(owner, LookupParameters) else owner.gradient_array())
            for owner in by_storage(parameters)
        ]
        self._entries = [gradient_of(x) for x in measured if x not in self._moving]
        self._rows = [call.give_gradient()[0] if call.table is None else 0 for call in calls]
        self._of_tables = [(at, call) for at, call in enumerate(calls) if call.table is not None]

    def fits(self, parameters: Sequence[Parameter], group_of: Mapping[Parameter, int]) -> bool:
        """Whether it is what these parameters need, and they and their gradients are where they were."""
        if self._group_of is not group_of or self.parameters != parameters:
            return False
        for parameter, stack in zip(parameters, self._stacks, strict=True):
            if parameter.stack is not stack:
                return False
        for owner, array, gradient in self._places:
            if owner.array is not array or not (gradient is None or owner.gathers_in(gradient)):
                return False
        return True

    def norm(self) -> float:
        """See `arrays.norm`: of all gradients."""
        return norm(self._backend, self._entries + [gradient_of(x) for x in self._moving])

    def give_constants(self, place: str, constants: Mapping[Parameter, list[float]]) -> None:
        """Have the rule's constants for each of those that `alike` names; errors as of `arrays.sent`."""
        known = self._sent
        new = {one: given for one, given in constants.items() if one not in known or known[one][0] != given}
        if new:
            sent_now = {one: (given, sent(one, given, place)) for one, given in new.items()}
            with signals_deferred():  # a kernel's call knows an address only: that array, and no other, is kept
                known |= sent_now
                for call, (_, _, one) in zip(self._calls, self.applied, strict=True):
                    if one in new:
                        call.give_constants(known[one][1])

    def update(self) -> None:
        """Update all parameters by the constants that were given last, and forget their gradients."""
        held = []
        for at, call in self._of_tables:
            self._rows[at], kept = call.give_gradient()
            held.append(kept)
        for handle, call, n in zip(self._handles, self._calls, self._rows, strict=True):
            self._backend.call(handle, n, call.width, call.given)
        for parameter in self.parameters:
            parameter.note_cleared()
