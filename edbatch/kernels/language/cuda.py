"""Kernels for GPUs, in CUDA C++: void kernel(long long n, Given<words> given), see `given` and common.cu.

An ITEM is a row, or, if the list axis numbers groups, an element of a row's list. Without reductions each entry of an
item is a thread (`geometry.spread`: rows are items). With reductions each group is computed by the threads of one y of
a block, which are one, or a multiple of 32 (see `Turns`); they go through its entries as often as there are passes, and
compute again what they need again. A sum is taken in float64 after every 64 entries. So it does not depend on what
other rows there are, though on the number of threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edbatch.kernels.language.analysis import Analysis, analysis_of
from edbatch.kernels.language.cuda_functions import function, number
from edbatch.kernels.language.given import INTEGER, PLACE, given_of
from edbatch.kernels.language.ir import (
    NEXT,
    RUN,
    Compute,
    Constant,
    Count,
    Index,
    Integer,
    Kernel,
    Load,
    LoadAt,
    Reduce,
    Store,
)

ENTRIES = """
extern "C" __global__ void {name}(const long long n, const Given<{words}> given) {{
    const long long item = own_row(), column = own_column();
    {items}
    if (item >= items) return;
    {lines}
}}
"""
GROUPS = """
extern "C" __global__ void {name}(const long long n, const Given<{words}> given) {{
    {items}
    const long long each = {each};
    const Turns turns;
    for (long long turn = turns.first; turn < items * each; turn += turns.step) {{
        const long long at = turns.row(turn, items * each);
        {lines}
    }}
}}
"""
_ACCUMULATORS = {"sum": "Sum<{type}>", "max": "Largest<{type}>", "min": "Smallest<{type}>", "first": "First"}


def source_of(kernel: Kernel, name: str = "kernel") -> str:
    """The kernel as text, after common.cu.

    Example:
        >>> from edbatch.kernels.language.ir import Place
        >>> steps = (Load(0, (NEXT,)), Compute("tanh", (0,)))
        >>> print(source_of(Kernel(1, 0, (Place(), Place()), steps, (Store(1, 1, (NEXT,)),))).split("return;")[2])
        <BLANKLINE>
            const long long i = item;
            const long long x0 = column;
            const float* const p0 = row_at<float>(given.v + 1, (const int*)given.v[3], i);
            float* const p1 = row_at<float>(given.v + 4, (const int*)given.v[6], i);
            const float v0 = p0[x0];
            const float v1 = tanhf(v0);
            p1[x0] = v1;
        }
        <BLANKLINE>
    """
    return _Writer(kernel, analysis_of(kernel)).text(name)


class _Writer:
    def __init__(self, kernel: Kernel, analysis: Analysis) -> None:
        self._kernel, self._analysis, self._given = kernel, analysis, given_of(kernel)
        self._float = "float" if kernel.dtype == "float32" else "double"
        self._index = "int" if kernel.index_bits == 32 else "long long"
        self._grouped = analysis.grouped
        self._lines: list[str] = []
        self._values: set[int] = set()
        items = analysis.outer if self._grouped else analysis.outer | analysis.inner
        self._of_items = kernel.list_axis is not None and kernel.list_axis in items
        self._axes = sorted(items - {kernel.list_axis} if self._of_items else items)

    def text(self, name: str) -> str:
        kernel = self._kernel
        items = "const long long items = n;"
        if self._of_items:
            offsets = f"(const {self._index}*)given.v[{kernel.list_axis}]"
            items = (
                f"const {self._index}* const offsets = {offsets};\n    const long long items = offsets[n] - offsets[0];"
            )
        self._begin()
        if self._grouped:
            self._group()
        else:
            self._entry()
        shape, indent = (GROUPS, 8) if self._grouped else (ENTRIES, 4)
        lines = f"\n{' ' * indent}".join(_used(self._lines))
        return shape.format(
            name=name, words=self._given.words, items=items, each=self._product(self._axes), lines=lines
        )

    def _size(self, axis: int) -> str:
        return "list_size" if axis == self._kernel.list_axis else f"given.v[{axis}]"

    def _product(self, axes: Iterable[int]) -> str:
        return " * ".join(map(self._size, axes)) or "1ll"

    def _begin(self) -> None:
        """The row, the indices of the group (or entry), and where rows begin."""
        kernel, lines = self._kernel, self._lines
        if self._grouped:
            lines.append("const bool mine = turns.mine(turn, items * each);")
            lines.append(f"const long long item = {'divided(at, each)' if self._axes else 'at'};")
            lines.append("const long long column = at - item * each;")
        else:
            lines.append(f"if (column >= {self._product(self._axes)}) return;")
        if self._of_items:
            lines += [
                "const long long element = item + offsets[0];",
                "const long long i = row_of(offsets, n, element);",
            ]
            lines.append(f"const long long x{kernel.list_axis} = element - offsets[i];")
        else:
            lines.append("const long long i = item;")
        if kernel.list_axis is not None:
            lines.append(f"const {self._index}* const list = (const {self._index}*)given.v[{kernel.list_axis}] + i;")
            lines.append("const long long list_size = list[1] - list[0];")
        self._indices("column", self._axes)
        self._rows(elements=False)
        if self._of_items:
            self._rows(elements=True)
        for number_, step in enumerate(kernel.instructions):
            if isinstance(step, Integer):
                at = self._given.integers + INTEGER * step.number
                text = f"*(const {self._index}*)(given.v[{at}] + i * given.v[{at + 1}])"
                lines.append(f"const long long v{number_} = {text};")
                self._values.add(number_)

    def _indices(self, variable: str, axes: list[int]) -> None:
        """The indices along axes of the entry that a variable numbers."""
        rest = variable
        for axis in reversed(axes):
            if axis == axes[0]:
                self._lines.append(f"const long long x{axis} = {rest};")
                break
            self._lines.append(f"const long long q{axis} = divided({rest}, {self._size(axis)});")
            self._lines.append(f"const long long x{axis} = {rest} - q{axis} * {self._size(axis)};")
            rest = f"q{axis}"

    def _rows(self, elements: bool) -> None:
        written = {store.place for store in self._kernel.stores}
        for number_, place in enumerate(self._kernel.places):
            if place.elements != elements:
                continue
            at = self._given.places + PLACE * number_
            row = "i" if not elements else f"list[0] + x{self._kernel.list_axis}"
            const = "" if number_ in written else "const "
            listed = f"(const {self._index}*)given.v[{at + 2}]"
            text = f"row_at<{self._float}>(given.v + {at}, {listed}, {row})"
            self._lines.append(f"{const}{self._float}* const p{number_} = {text};")

    def _entry(self) -> None:
        """Of a kernel without reductions."""
        analysis = self._analysis
        self._need([store.value for store in self._kernel.stores])
        for store in analysis.entry_stores:
            self._store(store, "")
        for store in analysis.group_stores:
            self._store(store, "")

    def _group(self) -> None:
        analysis = self._analysis
        for pass_, reductions in enumerate(analysis.reductions):
            for value in reductions:
                step = self._kernel.instructions[value]
                assert isinstance(step, Reduce)
                accumulator = _ACCUMULATORS[step.function].format(type=self._float)
                self._lines.append(f"{accumulator} r{value};")
            groups = [
                value
                for value in analysis.closure(analysis.roots(pass_), self._values)
                if not analysis.is_entry(value) and self._kernel.instructions[value]
            ]
            self._need(groups)
            self._lines += self._pass(pass_, reductions)
            for value in reductions:
                kind = "long long" if analysis.types[value] == "integer" else self._float
                self._lines.append(f"const {kind} v{value} = r{value}.over_lanes();")
                self._values.add(value)
        self._need([store.value for store in analysis.group_stores])
        for store in analysis.group_stores:
            self._store(store, "if (mine && threadIdx.x == 0) ")

    def _begin_entry(self) -> None:
        """The indices of entry k of a group, and where the rows of its element begin."""
        self._indices("k", sorted(self._analysis.inner))
        if self._kernel.list_axis in self._analysis.inner:
            self._rows(elements=True)

    def _pass(self, pass_: int, reductions: list[int]) -> list[str]:
        """The lines of a pass over a group's entries k."""
        analysis = self._analysis
        around, before, self._lines = self._lines, self._values.copy(), []
        self._begin_entry()
        self._need(analysis.roots(pass_))
        for value in reductions:
            step = self._kernel.instructions[value]
            assert isinstance(step, Reduce)
            given = f"{self._truth(step.value)}, k" if step.function == "first" else self._number(step.value)
            self._lines.append(f"r{value}.take({given});")
        functions = [("", self._lines)]
        if pass_ == len(analysis.reductions) - 1 and analysis.entry_stores:
            # Values first, stores later: what may lie where something is stored is not read before that is done.
            stores = analysis.entry_stores
            kind = f"Stored<{self._float}, {len(stores)}>"
            self._lines.append(f"return {kind}{{{{{', '.join(self._number(store.value) for store in stores)}}}}};")
            self._lines = ["if (!mine) return;"]
            self._begin_entry()
            for number_, store in enumerate(stores):
                self._store(store, "", f"stored.v[{number_}]")
            functions.append((f", const {kind}& stored", self._lines))
        self._lines, self._values = around, before
        found = f"each_entry({self._product(sorted(analysis.inner))}"
        lines = []
        for more, body in functions:
            used = _used(body)
            k = " k" if any(re.search(r"\bk\b", line) for line in used) else ""
            lines += [f"{found}, [&](long long{k}{more}) {{", *(f"    {line}" for line in used)]
            found = "}"
        return [*lines, "});"]

    def _need(self, wanted: Iterable[int]) -> None:
        """Define values, and all that they are made of."""
        for value in sorted(self._analysis.closure(wanted, self._values)):
            type = {"number": self._float, "integer": "long long", "truth": "bool"}[self._analysis.types[value]]
            self._lines.append(f"const {type} v{value} = {self._computed(value)};")
            self._values.add(value)

    def _computed(self, value: int) -> str:
        step = self._kernel.instructions[value]
        match step:
            case Load(place, strides):
                return f"p{place}[{self._at(step, strides)}]"
            case LoadAt(place, strides, index, along):
                at = f"v{index}"
                if along == RUN:
                    at += f" * given.v[{self._given.stride(step, self._kernel.axes)}]"
                return f"p{place}[{self._at(step, strides)} + {at}]"
            case Constant(text):
                return number(float.fromhex(text), self._kernel.dtype)
            case Index(axis):
                return f"x{axis}"
            case Count(axis):
                return self._size(axis)
            case Compute(name, operands):
                kept = self._analysis.types[value] == "integer" or name == "uniform" or self._compares_integers(step)
                texts = [f"v{x}" if kept else self._operand(name, x) for x in operands]
                return function(name, texts, self._kernel.dtype)
        raise AssertionError(f"{step} is known before")

    def _compares_integers(self, step: Compute) -> bool:
        return {self._analysis.types[x] for x in step.operands} == {"integer"} and step.function in (
            "less", "less_equal", "greater", "greater_equal", "equal", "different"
        )  # fmt: skip

    def _operand(self, name: str, value: int) -> str:
        if name in ("both", "either", "no"):
            return self._truth(value)
        is_test = name == "select" and self._analysis.types[value] == "truth"
        return f"v{value}" if is_test else self._number(value)

    def _number(self, value: int) -> str:
        kind = self._analysis.types[value]
        return f"v{value}" if kind == "number" else f"({self._float})v{value}"

    def _truth(self, value: int) -> str:
        return f"v{value}" if self._analysis.types[value] == "truth" else f"(v{value} != 0)"

    def _at(self, access: Load | LoadAt | Store, strides: tuple[int, ...]) -> str:
        terms = [f"x{axis}" for axis, stride in enumerate(strides) if stride == NEXT]
        runs = [axis for axis, stride in enumerate(strides) if stride == RUN]
        terms += [f"x{axis} * given.v[{self._given.stride(access, axis)}]" for axis in runs]
        if access.column is not None:
            terms.append(f"given.v[{self._given.columns + access.column}]")
        return " + ".join(terms) or "0"

    def _store(self, store: Store, condition: str, value: str = "") -> None:
        sign = "+=" if store.add else "="
        place = f"p{store.place}[{self._at(store, store.strides)}]"
        self._lines.append(f"{condition}{place} {sign} {value or self._number(store.value)};")


def _used(lines: list[str]) -> list[str]:
    """Lines without definitions that nothing uses, of which compilers would warn; what is indented is used."""
    names: set[str] = set()
    kept = []
    for line in reversed(lines):
        defined = re.match(r"(?:const )?[\w ]+[*]?(?: const)? (\w+) = ", line)
        if defined is None or defined[1] in names:
            names.update(re.findall(r"\w+", line))
            kept.append(line)
    return kept[::-1]
