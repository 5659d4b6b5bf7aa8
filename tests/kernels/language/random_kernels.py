"""Random kernels and memory for them: any axes, strides of any sign, lists of rows, lists of any length."""

from dataclasses import replace

import numpy as np

from edbatch.kernels.language.given import filled
from edbatch.kernels.language.ir import (
    NEXT,
    RUN,
    SAME,
    Compute,
    Constant,
    Count,
    Index,
    Integer,
    Kernel,
    Load,
    Place,
    Reduce,
    Store,
    operands_of,
)  # fmt: skip
from tests.kernels.language.interpreter import Call, Rows

EXACT = ("add", "subtract", "multiply", "maximum", "minimum", "abs", "negate", "floor", "less", "greater", "equal",
         "select", "both", "either", "no", "alike", "greater_equal", "different")  # fmt: skip
SMOOTH = ("add", "subtract", "multiply", "maximum", "tanh", "sigmoid", "exp", "sin", "erf", "cos", "negate")
ARGUMENTS = dict.fromkeys(("add", "subtract", "multiply", "maximum", "minimum", "less", "greater", "equal",
             "both", "either", "alike", "greater_equal", "different"), 2) | {"select": 3}  # fmt: skip


class Maker:
    """One kernel and one call of it.

    Args:
        random: NumPy's generator.
        exact: numbers are small integers and all functions exact, so results are, too.
        dtype: of the kernel.
    """

    def __init__(self, random, exact=True, dtype="float32"):
        self.random, self.exact, self.dtype = random, exact, np.dtype(dtype)
        self.outer, self.inner = int(random.integers(0, 3)), int(random.integers(0, 3))
        self.axes = self.outer + self.inner
        largest = int(random.choice([3, 6, 40]))
        self.sizes = [int(random.integers(0 if random.random() < 0.05 else 1, largest + 1)) for _ in range(self.axes)]
        if self.axes and random.random() < 0.3:
            self.sizes[random.integers(self.axes)] = int(random.integers(1, 400))
        while np.prod(self.sizes) > 3000:
            self.sizes[int(np.argmax(self.sizes))] //= 2
        self.n = int(random.integers(0, 5))
        self.list_axis, self.offsets, self.elements = None, None, 0
        if self.axes and random.random() < 0.4:
            self.list_axis = int(random.integers(self.axes))
            self.sizes[self.list_axis] = 0  # or the most of any row
            most = int(random.choice([2, 5, 70]))
            others = np.prod([size for axis, size in enumerate(self.sizes) if axis != self.list_axis])
            lengths = random.integers(0, min(most, 1 + 3000 // max(1, int(others))) + 1, self.n)
            self.offsets = (np.cumsum([0, *lengths]) + random.integers(3)).astype(np.int32)
            self.elements = int(self.offsets[-1])
            self.sizes[self.list_axis] = int(lengths.max(initial=0))
        self.places, self.rows, self.run = [], [], {}
        self.integers = [random.integers(0, 4, self.n).astype(np.int32) for _ in range(2)]
        self.steps, self.stores, self.columns = [], [], []

    def make(self):
        """(kernel, call)."""
        random = self.random
        for _ in range(random.integers(1, 5)):
            self._load()
        for _ in range(random.integers(1, 12)):
            self._step()
        groups = [v for v in range(len(self.steps)) if not self._varies()[v] & self._inner()]
        for _ in range(random.integers(1, 4)):
            self._store(groups)
        kernel = Kernel(
            self.outer, self.inner, tuple(self.places), tuple(self.steps), tuple(self.stores), self.list_axis,
            self.dtype.name,
        )  # fmt: skip
        accesses = dict.fromkeys([*(s for s in kernel.instructions if isinstance(s, Load)), *kernel.stores])
        strides = [x for access in accesses for x in self.run[access]]
        return kernel, Call(
            self.n, self.sizes, self.rows, strides, self.integers[: kernel.integers], self.columns, self.offsets
        )

    def _inner(self):
        return set(range(self.outer, self.axes))

    def _varies(self):
        found = []
        for step in self.steps:
            below = set().union(*(found[x] for x in operands_of(step)))
            match step:
                case Load():
                    below = below | {a for a, s in enumerate(step.strides) if s}
                    below = below | ({self.list_axis} if self.places[step.place].elements else set())
                case Index(axis):
                    below = {axis}
                case Reduce():
                    below = below - self._inner()
            found.append(below)
        return found

    def _numbers(self, count):
        if self.exact:
            return self.random.integers(-3, 4, count).astype(self.dtype)
        return self.random.normal(size=count).astype(self.dtype)

    def _load(self):
        random = self.random
        elements = self.list_axis is not None and random.random() < 0.6
        kinds, numbers = [], []
        for _ in range(self.axes):
            kind = int(random.choice([SAME, NEXT, NEXT, RUN]))
            kinds.append(kind)
            numbers.append({SAME: 0, NEXT: 1}.get(kind, int(random.integers(-4, 6))))
        where = len(self.places)
        access = Load(where, tuple(kinds), self._column(), entry=int(random.random() < 0.2))
        along = 0
        if self.integers and random.random() < 0.15:
            self.steps.append(Integer(int(random.integers(2))) if random.random() < 0.7 else Constant((2.6).hex()))
            along = int(random.choice([NEXT, RUN]))
            access = Load(where, tuple(kinds), access.column, index=len(self.steps) - 1, along=along)
            numbers.append(1 if along == NEXT else int(random.integers(-2, 3)))
        ends = [(size - 1) * step for size, step in zip([*self.sizes, 4], numbers, strict=False) if size > 0]
        low, high = sum(min(0, x) for x in ends), sum(max(0, x) for x in ends)
        self._place(
            elements, low, high, int(random.choice([-2, 0, 1, 3, high - low + 1])), listed=random.random() < 0.4
        )
        self.run[access] = [x for x, kind in zip(numbers, [*kinds, along], strict=False) if kind == RUN]
        self.steps.append(access)

    def _column(self):
        """Of some accesses; memory begins before."""
        if self.random.random() < 0.7:
            return None
        self.columns.append(int(self.random.integers(-3, 4)))
        return len(self.columns) - 1

    def _place(self, elements, low, high, distance, listed, once=False):
        """Memory for rows whose entries lie from `low` to `high`."""
        random, count = self.random, self.elements if elements else self.n
        held = max(1, count) + (int(random.integers(3)) if listed else 0)
        rows = None
        if listed:
            rows = (random.permutation(held)[:count] if once else random.integers(0, held, count)).astype(np.int32)
        ends = [0, (held - 1) * distance]
        memory = self._numbers(max(ends) - min(ends) + high - low + 1 + 7)
        self.places.append(
            Place(elements, once=not elements and distance == 0 and not listed and random.random() < 0.5)
        )
        self.rows.append(Rows(memory, 3 - low - min(ends), distance, rows))

    def _step(self):
        random = self.random
        choice = random.random()
        if choice < 0.2 and self.inner:
            function = random.choice(["sum", "max", "min", "first"] if self.exact else ["sum", "max"])
            varying = [v for v, axes in enumerate(self._varies()) if axes & self._inner()] or [0]
            self.steps.append(Reduce(str(function), int(random.choice(varying))))
            self._bound()
            return
        if choice < 0.3:
            self.steps.append(Constant(float(random.integers(-2, 3)).hex()))
            return
        if choice < 0.4 and self.axes and self.exact:
            self.steps.append(random.choice([Index, Count])(int(random.integers(self.axes))))
            return
        function = str(random.choice(EXACT if self.exact else SMOOTH))
        operands = tuple(int(random.integers(len(self.steps))) for _ in range(ARGUMENTS.get(function, 1)))
        self.steps.append(Compute(function, operands))
        self._bound()

    def _number_below(self, count):
        """A number of an entry, or a negative one."""
        value = len(self.steps)
        self.steps += [Constant((count - 1.0).hex()), Compute("minimum", (int(self.random.integers(value)), value))]
        return value + 1

    def _bound(self):
        """Keep the last value small."""
        value, bound = len(self.steps) - 1, 64.0 if self.exact else 2.0
        self.steps += [Constant(bound.hex()), Compute("minimum", (value, value + 1))]
        self.steps += [Constant((-bound).hex()), Compute("maximum", (value + 2, value + 3))]

    def _store(self, groups):
        """To a place of its own, whose strides are those of an array with its axes in any order, some turned round.

        Of some, an index says where they go, among four entries.
        """
        random = self.random
        indexed = self.inner == 1 and random.random() < 0.2
        index = self._number_below(4) if indexed else 0
        varies = self._varies()
        next_is_index = indexed and random.random() < 0.5
        value = (
            int(random.choice(groups)) if groups and random.random() < 0.4 else int(random.integers(len(self.steps)))
        )
        every = bool(varies[value] & self._inner()) or random.random() < 0.2
        axes = list(range(self.axes if every and not indexed else self.outer))
        elements = self.list_axis is not None and self.list_axis in axes
        strides, kinds, below = [0] * self.axes, [SAME] * self.axes, 4 if next_is_index else 1
        order = axes if random.random() < 0.5 else list(random.permutation(axes))
        for axis in map(int, reversed(order)):
            if axis == self.list_axis:
                continue
            is_next = below == 1 and random.random() < 0.8
            strides[axis] = below if is_next or random.random() < 0.6 else -below
            kinds[axis] = NEXT if is_next else RUN
            below *= max(1, self.sizes[axis]) + int(random.integers(2))
        along = 1 if next_is_index else below
        ends = [(size - 1) * step for size, step in zip(self.sizes, strides, strict=True) if size > 0]
        ends.append(3 * along * indexed)
        low, high = sum(min(0, x) for x in ends), sum(max(0, x) for x in ends)
        distance = (high - low + 1 + int(random.integers(3))) * int(random.choice([-1, 1]))
        kind = NEXT if next_is_index else RUN
        adds, column = bool(random.random() < 0.3), self._column()
        at = (index, kind) if indexed else ()
        store = Store(value, len(self.places), tuple(kinds), adds, column, *at)
        self._place(elements, low, high, distance, listed=random.random() < 0.3, once=True)
        kinds.append(kind * indexed)
        self.run[store] = [x for x, kind in zip([*strides, along], kinds, strict=True) if kind == RUN]
        self.stores.append(store)


def copied(call):
    """The same call, of memory of its own."""
    return replace(call, places=[replace(rows, memory=rows.memory.copy()) for rows in call.places])


def given(kernel, call, address=lambda array: array.ctypes.data):
    """What a kernel is given."""
    sizes = list(call.sizes)
    size = np.dtype(kernel.dtype).itemsize
    if kernel.list_axis is not None:
        sizes[kernel.list_axis] = address(call.offsets)
    places = [
        (address(p.memory) + size * p.first, size * p.distance, 0 if p.listed is None else address(p.listed))
        for p in call.places
    ]
    integers = [address(x) for x in call.integers]
    return filled(kernel, sizes, places, call.strides, call.columns, integers)
