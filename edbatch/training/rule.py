"""Update rules of optimizers: what is done to one entry of a parameter, and the kernel that does it to all."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

from edbatch.base.numbers import is_real
from edbatch.errors import EdBatchError, shown
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, SAME, Kernel, Load, Place, Store, operands_of

CONSTANTS, GRADIENT, PARAMETER, SLOTS = range(4)  # places of the kernel


@dataclass(frozen=True, eq=False)  # found by identity in every update: comparing names and text takes as long as a call
class Rule:
    """How one entry of a parameter changes by its gradient, and what is remembered of it.

    Args:
        slots: names of the numbers that are remembered for every entry; 0 at first.
        constants: names of the numbers that are the same for all entries of an update; given with each.
        body: assignments, one after the other, to the parameter `p`, to slots, and to names that last for this entry;
            of scalar expressions (see `kernels.language.expressions`) of names: `p`, the gradient `g`, slots,
            constants, and what was assigned before. All is computed in the parameter's dtype.

    Raises:
        EdBatchError: the body holds anything else, or never reads p, g, a slot or a constant as it was given.

    Example:
        >>> momentum = Rule(("velocity",), ("lr", "keep"), "velocity = keep * velocity + g; p = p - lr * velocity")
        >>> momentum.slots
        ('velocity',)
        >>> Rule((), (), "p = p - x * g")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: the update rule 'p = p - x * g': the scalar expression 'p - x * g': no value 'x'
    """

    slots: tuple[str, ...]
    constants: tuple[str, ...]
    body: str

    def __post_init__(self) -> None:
        try:
            kernel_of(self, "float32", long=True)
        except (EdBatchError, SyntaxError) as error:
            raise EdBatchError(f"the update rule {self.body!r}: {error}") from None

    def ordered(self, place: str, scale: float, given: object) -> list[float]:
        """What the kernel is given: the constants in order, "scale" and those that an optimizer gives by name.

        Raises:
            EdBatchError: they are not those of the rule, or no numbers.
        """
        if "scale" not in self.constants:
            raise EdBatchError(f"{place}.rule: expected a constant 'scale', which it multiplies the gradient by")
        if not isinstance(given, dict) or {"scale", *given} != set(self.constants) or "scale" in given:
            got = ", ".join(map(str, given)) or "none" if isinstance(given, dict) else shown(given)
            names = ", ".join([name for name in self.constants if name != "scale"])
            raise EdBatchError(f"{place}.constants: expected those of the rule by name ({names}), got {got}")
        for name, value in given.items():
            if value.__class__ is not float and not is_real(value):
                raise EdBatchError(f"{place}.constants: {name}: expected a number, got {shown(value)}")
        return [*map(float, map({"scale": scale, **given}.__getitem__, self.constants))]


@cache
def kernel_of(rule: Rule, dtype: str, long: bool) -> Kernel:
    """The rule over rows of entries, in place.

    Its places are the constants, one after the other in one row for all; the gradient; the parameter; and, if there are
    slots, the first: slot k begins in column k of its rows. A gradient of long rows,
    which parameters keep, is all zeros afterwards: clearing it by itself would go through memory once more.

    Args:
        dtype: of all.
        long: see `Kernel`.
    """
    make = Builder()
    names = (*rule.constants, "p", "g", *rule.slots)
    # What is loaded first comes into a fused multiply-add as a product: here, `decay * p` of `scale * g + decay * p`.
    loads = {name: Load(CONSTANTS, (SAME,), entry=entry) for entry, name in enumerate(rule.constants)}
    loads |= {"p": Load(PARAMETER, (NEXT,)), "g": Load(GRADIENT, (NEXT,))}
    loads |= {name: Load(SLOTS, (NEXT,), column) for column, name in enumerate(rule.slots)}
    if len(loads) < len(names):
        raise EdBatchError(f"a name occurs twice among {', '.join(names)}")
    given = {name: make.add(load) for name, load in loads.items()}
    values = given.copy()
    for statement in ast.parse(rule.body).body:
        match statement:
            case ast.Assign([ast.Name(target)], expression) if target != "g" and target not in rule.constants:
                values[target] = make.expression(ast.unparse(expression), **values)
            case _:
                raise EdBatchError(f"unexpected {ast.unparse(statement)!r}")
    changed = [name for name in ("p", *rule.slots) if values[name] != given[name]]
    read = {value for step in make.instructions for value in operands_of(step)} | {values[name] for name in changed}
    if unused := [name for name, value in given.items() if value not in read]:
        raise EdBatchError(f"does not read {', '.join(unused)} as given")
    stores = tuple(Store(values[name], loads[name].place, (NEXT,), column=loads[name].column) for name in changed)
    if long:
        stores += (Store(make.number(0.0), GRADIENT, (NEXT,)),)
    places = (Place(once=True), *(Place(),) * (PARAMETER + bool(rule.slots)))
    return Kernel(1, 0, places, make.instructions, stores, None, dtype, long)
