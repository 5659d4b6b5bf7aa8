"""What a kernel has to compute: NumPy's reading of it, row by row, in float64 or in the kernel's dtype."""

import math
from dataclasses import dataclass, field

import numpy as np
import scipy.special

from edbatch.kernels.language.ir import (
    NEXT,
    Compute,
    Constant,
    Count,
    Index,
    Integer,
    Load,
    Reduce,
    StoreLargest,
    Whole,
)
from tests.uniform import uniform

FUNCTIONS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negate": np.negative,
    "abs": np.abs,
    "same": np.positive,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "different": np.not_equal,
    "both": np.logical_and,
    "either": np.logical_or,
    "no": np.logical_not,
    "alike": lambda a, b: (a == b) | ((a != a) & (b != b)),
    "select": lambda test, a, b: np.where(test != 0, a, b),
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sigmoid": scipy.special.expit,
    "sin": np.sin,
    "cos": np.cos,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "power": np.power,
}


@dataclass
class Rows:
    """A place: `memory` [entries], where its rows begin, in entries."""

    memory: np.ndarray
    first: int
    distance: int
    listed: np.ndarray | None = None

    def begin(self, row):
        return self.first + (row if self.listed is None else int(self.listed[row])) * self.distance


@dataclass
class Call:
    """What a kernel is given; sizes of a list axis are not looked at."""

    n: int
    sizes: list
    places: list
    strides: list = field(default_factory=list)
    integers: list = field(default_factory=list)  # arrays [n]
    columns: list = field(default_factory=list)
    offsets: np.ndarray | None = None


def interpret(kernel, call):
    """Run it, in the arrays of its places; numbers are computed in the dtype of these."""
    strides = run_strides(kernel, call.strides)
    with np.errstate(all="ignore"):
        for i in range(call.n):
            _row(kernel, call, strides, i)


def run_strides(kernel, given):
    """By access and axis, the strides in entries; `given` are those that are RUN, in the order of `given`."""
    given, found = iter(given), {}
    for access in (*kernel.instructions, *kernel.stores):
        if isinstance(access, Load) or access in kernel.stores:
            along = () if access.index is None else (access.along,)
            if access not in found:
                kinds = (*access.strides, *along)
                found[access] = [kind if kind <= NEXT else next(given) for kind in kinds]
    return found


def _row(kernel, call, strides, i):
    sizes, first = list(call.sizes), 0
    if kernel.list_axis is not None:
        first = int(call.offsets[i])
        sizes[kernel.list_axis] = int(call.offsets[i + 1]) - first
    grid = np.indices(sizes, sparse=True) if sizes else []
    inner = tuple(range(kernel.outer, kernel.axes))
    dtype = np.dtype(kernel.dtype)

    def positions(access):
        place, rows = kernel.places[access.place], call.places[access.place]
        column = 0 if access.column is None else call.columns[access.column]
        column += access.entry if isinstance(access, Load) else 0
        total = np.full((1,) * kernel.axes, column + (0 if place.elements else rows.begin(i)))
        if place.elements:
            begins = np.array([rows.begin(first + at) for at in range(sizes[kernel.list_axis])], int)
            shape = [1] * kernel.axes
            shape[kernel.list_axis] = -1
            total = total + begins.reshape(shape)
        for axis, stride in enumerate(strides[access][: kernel.axes]):
            if access.strides[axis]:
                total = total + grid[axis] * stride
        return total

    values = []
    for step in kernel.instructions:
        match step:
            case Load(index=None):
                value = call.places[step.place].memory[positions(step)]
            case Load():
                value = call.places[step.place].memory[
                    positions(step) + np.asarray(values[step.index], int) * strides[step][-1]
                ]
            case Constant(text):
                value = dtype.type(float.fromhex(text))
            case Integer(number):
                value = np.int64(call.integers[number][i])
            case Whole(column):
                value = np.int64(call.columns[column])
            case Index(axis):
                value = grid[axis]
            case Count(axis):
                value = np.int64(sizes[axis])
            case Compute("uniform", (seed, position)):
                value = _uniform(values[seed], values[position], sizes).astype(dtype)
            case Compute(function, operands):
                given = [values[operand] for operand in operands]
                whole = (
                    function in ("add", "subtract", "multiply", "same", "select")
                    or FUNCTIONS[function](1, 1)
                    in (
                        True,
                        False,
                    )
                    if len(given) == 2
                    else function in ("same", "select")
                )
                integers = all(np.asarray(x).dtype.kind == "i" for x in given[-2:])
                if not (whole and integers):
                    given = [
                        np.asarray(x, dtype)
                        if np.asarray(x).dtype.kind != "b" or function not in ("select", "same")
                        else x
                        for x in given
                    ]
                value = FUNCTIONS[function](*given)
            case Reduce(function, of):
                value = _reduced(function, np.broadcast_to(values[of], sizes), inner, kernel.outer, dtype)
        values.append(value)
    written = []
    for store in kernel.stores:
        at = positions(store)
        if isinstance(store, StoreLargest):
            value, count = np.broadcast_to(values[store.value], sizes), call.columns[store.count]
            order = np.lexsort((-np.where(np.isnan(value), 0, value), ~np.isnan(value)))[..., :count]
            written.append((store, np.broadcast_to(at, sizes)[..., :count], order.astype(dtype)))
            continue
        if store.index is not None:
            index = np.broadcast_to(np.asarray(values[store.index]), sizes)
            is_there = index >= 0
            at = (np.broadcast_to(at, sizes) + index.astype(int) * strides[store][-1])[is_there]
            value = np.broadcast_to(np.asarray(values[store.value]).astype(dtype), sizes)[is_there]
            written += [(store, one, entry) for one, entry in zip(at, value, strict=True)]
            continue
        written.append((store, at, np.broadcast_to(np.asarray(values[store.value]).astype(dtype), np.shape(at))))
    for store, at, value in written:
        memory = call.places[store.place].memory
        memory[at] = memory[at] + value if store.add else value


def _reduced(function, value, inner, outer, dtype):
    flat = value.reshape(*value.shape[:outer], math.prod(value.shape[outer:]))
    shape = (*value.shape[:outer], *(1 for _ in inner))
    if function == "first":
        true = flat != 0
        found = (
            np.where(true.any(axis=-1), true.argmax(axis=-1), -1) if flat.shape[-1] else np.full(flat.shape[:-1], -1)
        )
        return found.astype(np.int64).reshape(shape)
    if function == "sum":
        return flat.sum(axis=-1, dtype=np.float64).astype(dtype).reshape(shape)
    function, empty = (np.max, -math.inf) if function == "max" else (np.min, math.inf)
    return function(flat.astype(dtype), axis=-1, initial=empty).reshape(shape)


def _uniform(seed, position, sizes):
    last = int(np.max(position, initial=0))
    numbers = uniform(np, np.array([seed]), (1, last + 1))[0]
    return numbers[np.broadcast_to(position, sizes)]
