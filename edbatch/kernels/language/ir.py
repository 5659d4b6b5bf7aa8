"""Kernels as data.

A kernel computes n rows, each by itself. A row has entries over AXES, whose sizes are known when the kernel runs. The
first, OUTER axes number groups; the others, INNER axes number the entries of a group, and reductions are always over a
whole group. One axis may be the LIST axis: row i has elements offsets[i], ..., offsets[i + 1] - 1 along it.

What is computed is a list of instructions, numbered, operands before users. Whether the value of one is a number an
entry, a group or a row is found out (see `analysis`), not declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

#: Distances between neighbours along an axis, in entries: the value is the same for all; they are neighbours in memory;
#: the distance is given when the kernel runs.
SAME, NEXT, RUN = 0, 1, 2

Strides = tuple[int, ...]


@dataclass(unsafe_hash=True, slots=True)
class Place:
    """Rows in memory, given when the kernel runs: row i begins at base + (list[i], if there is one, else i) * distance.

    All in bytes, so that a list may hold numbers of rows, or addresses with a distance of 1.

    Args:
        elements: there is a row for each element of the rows' lists, counted through all of them.
        once: there is one row for all; distance and list are 0. A CPU reads numbers of it once, not for each row.
    """

    elements: bool = False
    once: bool = False


@dataclass(unsafe_hash=True, slots=True)
class Load:
    """An entry of a place.

    Args:
        place: whose rows it is in.
        strides: one of SAME, NEXT, RUN for each axis.
        column: where the first entry is, from the beginning of the row: the number of a column that is given when the
            kernel runs; None: there.
        entry: so many entries further.
        index: the position of an earlier instruction: `along` (NEXT or RUN) times its value further, a label's score or
            a picked entry. Of a number that is no integer the fraction is cut off; it is not NaN, and shows something
            that is there.
    """

    place: int
    strides: Strides
    column: int | None = None
    entry: int = 0
    index: int | None = None
    along: int = NEXT


@dataclass(unsafe_hash=True, slots=True)
class Constant:
    """A number, written as `float.hex` writes it: kernels are keys, which 0.0 and -0.0 have to tell apart."""

    number: str


@dataclass(unsafe_hash=True, slots=True)
class Integer:
    """The row's integer of this number: an index, a label, a seed."""

    number: int


@dataclass(unsafe_hash=True, slots=True)
class Whole:
    """An integer that is the same for all rows, given when the kernel runs: the number of a column that says it."""

    column: int


@dataclass(unsafe_hash=True, slots=True)
class Index:
    """The number of the entry along an axis."""

    axis: int


@dataclass(unsafe_hash=True, slots=True)
class Count:
    """How many entries there are along an axis."""

    axis: int


@dataclass(unsafe_hash=True, slots=True)
class Compute:
    """A function of `FUNCTIONS`; operands are positions of earlier instructions."""

    function: str
    operands: tuple[int, ...]


@dataclass(unsafe_hash=True, slots=True)
class Reduce:
    """All values of a group in one.

    Args:
        function: "sum"; "max" or "min", NaN if any is; "first", the number of the first entry of the group whose value
            is not 0, or -1.
        value: the position of an earlier instruction.
    """

    function: str
    value: int


Instruction = Load | Constant | Integer | Whole | Index | Count | Compute | Reduce
REDUCTIONS = ("sum", "max", "min", "first")


@dataclass(unsafe_hash=True, slots=True)
class Store:
    """The value of an instruction, written to a place, or (`add`) added to what is there.

    Strides along the outer axes, or (of an entry) along all, are not SAME: each number has an entry of its own.

    Args:
        index: the position of an instruction: the value goes `along` times its value further, to what a gather's
            gradient adds to; an entry whose index is negative is not stored. The entries of a group are stored one
            after the other, in their order, so that several may be added up in one place, or the last of them stay
            there. There is one inner axis, along which the stride is SAME: the index says where an entry goes.
    """

    value: int
    place: int
    strides: Strides
    add: bool = False
    column: int | None = None
    index: int | None = None
    along: int = NEXT

    @property
    def reads(self) -> tuple[int, ...]:
        """Positions of the values that it needs."""
        return (self.value,) if self.index is None else (self.value, self.index)


Access = Load | Store


@dataclass(unsafe_hash=True, slots=True)
class StoreLargest(Store):
    """The numbers of the largest entries of a group, the largest first.

    Of equal entries the first comes first; NaN is larger than all numbers. There is one inner axis, which is none of
    lists; the numbers lie along it as the stride says, and what they number is loaded. A kernel that stores this stores
    nothing else.

    Args:
        count: the number of a column that says how many.
    """

    count: int = 0


@dataclass(frozen=True)
class Kernel:
    """What is known of a kernel when it is compiled.

    Nothing that it stores is where another entry is loaded; an entry may be stored where it was loaded itself.

    Args:
        outer, inner: numbers of axes.
        places: of its rows.
        instructions: operands before users.
        stores: what is written, once all that the entry (or the group) needs is read.
        list_axis: the axis along which the rows' lists are, if any.
        dtype: of all numbers in memory; computed in it, too, if the function table says nothing else. Lists, offsets
            and integers are int32.
        long: whether rows have many thousand entries: a CPU then computes several vectors of one at a time.
    """

    outer: int
    inner: int
    places: tuple[Place, ...]
    instructions: tuple[Instruction, ...]
    stores: tuple[Store, ...]
    list_axis: int | None = None
    dtype: str = "float32"
    long: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Of all that it is made of: it is asked for whenever something is looked up of a kernel."""
        counts = self.outer, self.inner, self.list_axis, self.long
        return hash((*counts, self.places, self.instructions, self.stores, self.dtype))

    @property
    def axes(self) -> int:
        """How many."""
        return self.outer + self.inner

    @property
    def accesses(self) -> list[Access]:
        """What reads memory, then what writes to it."""
        return [step for step in (*self.instructions, *self.stores) if isinstance(step, Access)]

    @property
    def columns(self) -> int:
        """How many are given."""
        found = [step.column for step in (*self.accesses, *self.instructions) if isinstance(step, Access | Whole)]
        found += [store.count for store in self.stores if isinstance(store, StoreLargest)]
        return max((column + 1 for column in found if column is not None), default=0)

    @property
    def integers(self) -> int:
        """How many integers rows have."""
        return max((step.number + 1 for step in self.instructions if isinstance(step, Integer)), default=0)


def operands_of(step: Instruction) -> tuple[int, ...]:
    """Positions of the values that an instruction reads."""
    match step:
        case Compute(_, operands):
            return operands
        case Reduce(_, value) | Load(index=int(value)):
            return (value,)
    return ()
