"""Scalar functions, where rows begin, and what values are, in CUDA C++: kernels for GPUs, but for their loops."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from edbatch.errors import EdBatchError
from edbatch.kernels.language.analysis import Analysis
from edbatch.kernels.language.expressions import evaluate
from edbatch.kernels.language.functions import FUNCTIONS, as_float32
from edbatch.kernels.language.given import PLACE, given_of
from edbatch.kernels.language.ir import (
    NEXT,
    RUN,
    SAME,
    Access,
    Compute,
    Constant,
    Count,
    Index,
    Kernel,
    Load,
    LoadAt,
    Store,
    StoreAt,
    Whole,
)

OPERATORS = {
    "same": "{0}", "add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})", "divide": "({0} / {1})",
    "negate": "(-{0})", "less": "({0} < {1})", "less_equal": "({0} <= {1})", "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})", "equal": "({0} == {1})", "different": "({0} != {1})", "both": "({0} && {1})",
    "either": "({0} || {1})", "no": "(!{0})", "select": "({0} ? {1} : {2})",
}  # fmt: skip
_NAMES = {"abs": "fabs", "floor": "floor"}


def number(value: float, dtype: str = "float32") -> str:
    """A literal whose value is one of the dtype exactly, so that no compiler rounds it another way.

    Example:
        >>> number(0.3), number(-math.inf), number(0.3, "float64")
        ('0.30000001192092896f', '(-INFINITY)', '0.3')
    """
    if dtype == "float32":
        value = as_float32(value)
    if math.isnan(value):
        return "(INFINITY - INFINITY)"
    size = "INFINITY" if math.isinf(value) else f"{abs(value)!r}{'f' if dtype == 'float32' else ''}"
    return f"(-{size})" if math.copysign(1, value) < 0 else size


def function(name: str, operands: Sequence[str], dtype: str = "float32") -> str:
    """A function of the table, of operands in C++.

    Raises:
        EdBatchError: there is none of this name, or of so many operands.
    """
    known = FUNCTIONS.get(name)
    if known is None or len(known.arguments) != len(operands):
        raise EdBatchError(f"CUDA has no function {name!r} of {len(operands)}")
    if name in OPERATORS:
        return OPERATORS[name].format(*operands)
    symbol = known.cuda
    if not symbol and (library := known.library or _NAMES.get(name)):
        symbol = f"{library}f" if dtype == "float32" else library
    if symbol:
        return f"{symbol}({', '.join(operands)})"
    return evaluate(
        known.meaning,
        dict(zip(known.arguments, operands, strict=True)),
        lambda literal: number(float(literal), dtype),
        lambda called, given: function(called, given, dtype),
    )


class Values:
    """The lines of a kernel so far, and which values they define.

    Attributes:
        grouped: whether groups are computed; otherwise each entry by itself.
        of_items: whether items are elements of lists, not rows.
        axes: that number the groups (or entries) of an item.
    """

    def __init__(self, kernel: Kernel, analysis: Analysis) -> None:
        self.kernel, self.analysis, self.given = kernel, analysis, given_of(kernel)
        self.float = "float" if kernel.dtype == "float32" else "double"
        self.index = "int" if kernel.index_bits == 32 else "long long"
        self.grouped = analysis.grouped
        self.lines: list[str] = []
        self.defined: set[int] = set()
        items = analysis.outer if self.grouped else analysis.outer | analysis.inner
        self.of_items = kernel.list_axis is not None and kernel.list_axis in items
        self.axes = sorted(items - {kernel.list_axis} if self.of_items else items)

    def size(self, axis: int) -> str:
        """Of an axis."""
        return "list_size" if axis == self.kernel.list_axis else f"given.v[{axis}]"

    def product(self, axes: Iterable[int]) -> str:
        """Of the sizes of axes."""
        return " * ".join(map(self.size, axes)) or "1ll"

    def indices(self, variable: str, axes: list[int]) -> None:
        """The indices along axes of the entry that a variable numbers."""
        rest = variable
        for axis in reversed(axes):
            if axis == axes[0]:
                self.lines.append(f"const long long x{axis} = {rest};")
                break
            self.lines.append(f"const long long q{axis} = divided({rest}, {self.size(axis)});")
            self.lines.append(f"const long long x{axis} = {rest} - q{axis} * {self.size(axis)};")
            rest = f"q{axis}"

    def rows(self, elements: bool) -> None:
        """Define where the row begins in each place, or (`elements`) the row of the element."""
        written = {store.place for store in self.kernel.stores}
        for number_, place in enumerate(self.kernel.places):
            if place.elements != elements:
                continue
            at = self.given.places + PLACE * number_
            row = "i" if not elements else f"list[0] + x{self.kernel.list_axis}"
            const = "" if number_ in written else "const "
            listed = f"(const {self.index}*)given.v[{at + 2}]"
            text = f"row_at<{self.float}>(given.v + {at}, {listed}, {row})"
            self.lines.append(f"{const}{self.float}* const p{number_} = {text};")

    def need(self, wanted: Iterable[int]) -> None:
        """Define values, and all that they are made of."""
        for value in sorted(self.analysis.closure(wanted, self.defined)):
            type = {"number": self.float, "integer": "long long", "truth": "bool"}[self.analysis.types[value]]
            self.lines.append(f"const {type} v{value} = {self._computed(value)};")
            self.defined.add(value)

    def _computed(self, value: int) -> str:
        step = self.kernel.instructions[value]
        match step:
            case Load(place, strides):
                return f"p{place}[{self._at(step, strides)}]"
            case LoadAt(place, strides, index, along):
                at = f"v{index}" if self.analysis.types[index] == "integer" else f"(long long)v{index}"
                return f"p{place}[{self._at(step, strides)} + {at}{self._times(step, along)}]"
            case Constant(text):
                return number(float.fromhex(text), self.kernel.dtype)
            case Whole(column):
                return self.at_column(column)
            case Index(axis):
                return f"x{axis}"
            case Count(axis):
                return self.size(axis)
            case Compute(name, operands):
                kept = self.analysis.types[value] == "integer" or name == "uniform" or self._compares_integers(step)
                texts = [f"v{x}" if kept else self._operand(name, x) for x in operands]
                return function(name, texts, self.kernel.dtype)
        raise AssertionError(f"{step} is known before")

    def _compares_integers(self, step: Compute) -> bool:
        return {self.analysis.types[x] for x in step.operands} == {"integer"} and step.function in (
            "less", "less_equal", "greater", "greater_equal", "equal", "different"
        )  # fmt: skip

    def _operand(self, name: str, value: int) -> str:
        if name in ("both", "either", "no"):
            return self.truth(value)
        is_test = name == "select" and self.analysis.types[value] == "truth"
        return f"v{value}" if is_test else self.number(value)

    def number(self, value: int) -> str:
        """A value as a number of the kernel's dtype."""
        kind = self.analysis.types[value]
        return f"v{value}" if kind == "number" else f"({self.float})v{value}"

    def truth(self, value: int) -> str:
        """A value as whether it is not 0."""
        return f"v{value}" if self.analysis.types[value] == "truth" else f"(v{value} != 0)"

    def _at(self, access: Access, strides: tuple[int, ...]) -> str:
        terms = [f"x{axis}" for axis, stride in enumerate(strides) if stride == NEXT]
        runs = [axis for axis, stride in enumerate(strides) if stride == RUN]
        terms += [f"x{axis} * given.v[{self.given.stride(access, axis)}]" for axis in runs]
        if access.column is not None:
            terms.append(self.at_column(access.column))
        if isinstance(access, Load) and access.entry:
            terms.append(str(access.entry))
        return " + ".join(terms) or "0"

    def at_column(self, number: int) -> str:
        """What a column says."""
        return f"given.v[{self.given.columns + number}]"

    def group(self, access: Load | Store) -> str:
        """Where the first entry of an access's group is, and from there to the next."""
        outer, axis = access.strides[: self.kernel.outer], self.kernel.outer
        kind = access.strides[axis]
        step = f"given.v[{self.given.stride(access, axis)}]" if kind == RUN else f"{kind}ll"
        return f"p{access.place} + {self._at(access, (*outer, SAME))}, {step}"

    def _times(self, access: LoadAt | StoreAt, along: int) -> str:
        """What an index of an access is multiplied with."""
        return f" * given.v[{self.given.stride(access, self.kernel.axes)}]" if along == RUN else ""

    def store(self, store: Store, condition: str, value: str = "", index: str = "") -> None:
        """Write a number, the store's own unless one is given, on a condition; `index`: of a `StoreAt`."""
        sign = "+=" if store.add else "="
        at = self._at(store, store.strides)
        if isinstance(store, StoreAt):
            condition += f"if ({index} >= 0) "
            at += f" + (long long){index}{self._times(store, store.along)}"
        place = f"p{store.place}[{at}]"
        self.lines.append(f"{condition}{place} {sign} {value or self.number(store.value)};")
