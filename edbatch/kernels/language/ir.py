"""Kernels as data.

A kernel computes n rows, each by itself. A row has entries over AXES, whose sizes are known when the kernel runs. The
first, OUTER axes number groups; the others, INNER axes number the entries of a group, and reductions are always over a
whole group. One axis may be the LIST axis: row i has elements offsets[i], ..., offsets[i + 1] - 1 along it.

What is computed is a list of instructions, numbered, operands before users. Whether the value of one is a number an
entry, a group or a row is found out (see `analysis`), not declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edbatch.errors import EdBatchError
from edbatch.kernels.language.functions import FUNCTIONS

#: Distances between neighbours along an axis, in entries: the value is the same for all; they are neighbours in memory;
#: the distance is given when the kernel runs.
SAME, NEXT, RUN = 0, 1, 2

Strides = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Rows in memory, given when the kernel runs: row i begins at base + (list[i], if there is one, else i) * distance.

    All in bytes, so that a list may hold numbers of rows, or addresses with a distance of 1.

    Args:
        elements: there is a row for each element of the rows' lists, counted through all of them.
        once: there is one row for all; distance and list are 0. A CPU reads numbers of it once, not for each row.
    """

    elements: bool = False
    once: bool = False


@dataclass(frozen=True)
class Load:
    """An entry of a place.

    Args:
        place: whose rows it is in.
        strides: one of SAME, NEXT, RUN for each axis.
        column: where the first entry is, from the beginning of the row: the number of a column that is given when the
            kernel runs; None: there.
        entry: so many entries further.
    """

    place: int
    strides: Strides
    column: int | None = None
    entry: int = 0


@dataclass(frozen=True)
class LoadAt:
    """The same, and `along` (NEXT or RUN) times a value further: a label's score, a picked entry.

    Of a number that is no integer the fraction is cut off; it is not NaN, and shows something that is there.
    """

    place: int
    strides: Strides
    index: int
    along: int = NEXT
    column: int | None = None


@dataclass(frozen=True)
class Constant:
    """A number, written as `float.hex` writes it: kernels are keys, which 0.0 and -0.0 have to tell apart."""

    number: str


@dataclass(frozen=True)
class Integer:
    """The row's integer of this number: an index, a label, a seed."""

    number: int


@dataclass(frozen=True)
class Whole:
    """An integer that is the same for all rows, given when the kernel runs: the number of a column that says it."""

    column: int


@dataclass(frozen=True)
class Index:
    """The number of the entry along an axis."""

    axis: int


@dataclass(frozen=True)
class Count:
    """How many entries there are along an axis."""

    axis: int


@dataclass(frozen=True)
class Compute:
    """A function of `FUNCTIONS`; operands are positions of earlier instructions."""

    function: str
    operands: tuple[int, ...]


@dataclass(frozen=True)
class Reduce:
    """All values of a group in one.

    Args:
        function: "sum"; "max" or "min", NaN if any is; "first", the number of the first entry of the group whose value
            is not 0, or -1.
        value: the position of an earlier instruction.
    """

    function: str
    value: int


Instruction = Load | LoadAt | Constant | Integer | Whole | Index | Count | Compute | Reduce
REDUCTIONS = ("sum", "max", "min", "first")


@dataclass(frozen=True)
class Store:
    """The value of an instruction, written to a place, or (`add`) added to what is there.

    Strides along the outer axes, or (of an entry) along all, are not SAME: each number has an entry of its own.
    """

    value: int
    place: int
    strides: Strides
    add: bool = False
    column: int | None = None

    @property
    def reads(self) -> tuple[int, ...]:
        """Positions of the values that it needs."""
        return (self.value,)


@dataclass(frozen=True)
class StoreAt(Store):
    """The same, and `along` (NEXT or RUN) times another value further: what a gather's gradient adds to.

    The entries of a group are stored one after the other, in their order, so that several may be added up in one place,
    or the last of them stay there. There is one inner axis, along which the stride is SAME: the index says where an
    entry goes.

    Args:
        index: the position of an instruction; of a number that is no integer the fraction is cut off, and an entry
            whose index is negative is not stored.
    """

    index: int = 0
    along: int = NEXT

    @property
    def reads(self) -> tuple[int, ...]:
        """Positions of the values that it needs."""
        return self.value, self.index


Access = Load | LoadAt | Store


@dataclass(frozen=True)
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
        dtype: of all numbers in memory; computed in it, too, if the function table says nothing else.
        index_bits: of lists, offsets and integers in memory: 32 or 64.
        long: whether rows have many thousand entries: a CPU then computes several vectors of one at a time.

    Raises:
        EdBatchError: it makes no sense.

    Example:
        >>> steps = (Load(0, (NEXT,)), Constant((2.0).hex()), Compute("multiply", (0, 1)))
        >>> Kernel(1, 0, (Place(), Place()), steps, (Store(2, 1, (NEXT,)),)).dtype
        'float32'
    """

    outer: int
    inner: int
    places: tuple[Place, ...]
    instructions: tuple[Instruction, ...]
    stores: tuple[Store, ...]
    list_axis: int | None = None
    dtype: str = "float32"
    index_bits: int = 32
    long: bool = False

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

    def __post_init__(self) -> None:
        self._expect(self.dtype in ("float32", "float64"), f"no dtype {self.dtype!r}")
        self._expect(self.index_bits in (32, 64), f"integers of {self.index_bits} bits")
        self._expect(self.list_axis is None or 0 <= self.list_axis < self.axes, f"no axis {self.list_axis}")
        for number, step in enumerate(self.instructions):
            self._expect(all(0 <= value < number for value in operands_of(step)), f"operands of {step} come later")
            match step:
                case Load(place, strides) | LoadAt(place, strides):
                    self._expect_place(step, place, strides)
                case Index(axis) | Count(axis):
                    self._expect(0 <= axis < self.axes, f"no axis {axis}")
                case Compute(function, operands):
                    known = function in FUNCTIONS and len(FUNCTIONS[function].arguments) == len(operands)
                    self._expect(known, f"no function {function!r} of {len(operands)} operands")
                case Reduce(function):
                    self._expect(function in REDUCTIONS and self.inner > 0, f"no reduction {function!r} of groups")
        for store in self.stores:
            self._expect(all(0 <= value < len(self.instructions) for value in store.reads), f"{store} has no value")
            self._expect_place(store, store.place, store.strides)
            in_order = self.inner == 1 and store.strides[-1] == SAME
            self._expect(in_order or not isinstance(store, StoreAt), f"{store} has entries along other axes than one")
            self._expect(not isinstance(store, StoreLargest) or self._is_of_largest(store), f"{store} is not alone")

    def _is_of_largest(self, store: StoreLargest) -> bool:
        loaded = isinstance(self.instructions[store.value], Load)
        of_group = self.inner == 1 and self.list_axis != self.outer and store.strides[-1] != SAME
        return loaded and of_group and len(self.stores) == 1 and not store.add

    def _expect_place(self, what: Access, place: int, strides: Strides) -> None:
        self._expect(0 <= place < len(self.places), f"{what} has no place")
        self._expect(len(strides) == self.axes and set(strides) <= {SAME, NEXT, RUN}, f"the strides of {what}")
        self._expect(not self.places[place].elements or self.list_axis is not None, f"{what} is of no list")

    def _expect(self, condition: bool, what: str) -> None:
        if not condition:
            raise EdBatchError(f"a kernel of {self.outer} + {self.inner} axes: {what}")


def operands_of(step: Instruction) -> tuple[int, ...]:
    """Positions of the values that an instruction reads."""
    match step:
        case Compute(_, operands):
            return operands
        case Reduce(_, value) | LoadAt(index=value):
            return (value,)
    return ()


def made_of(instructions: Sequence[Instruction], values: Iterable[int], known: Iterable[int] = ()) -> set[int]:
    """These values and all that they are computed of, except what is known, and what only that is made of."""
    found: set[int] = set()
    waiting, stop = [*values], set(known)
    while waiting:
        value = waiting.pop()
        if value not in found and value not in stop:
            found.add(value)
            waiting += operands_of(instructions[value])
    return found
