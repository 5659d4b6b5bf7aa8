"""Kernels for GPUs, in CUDA C++: void kernel(long long n, Given<words> given), see `given` and common.cu.

An ITEM is a row, or, if the list axis numbers groups, an element of a row's list. Without reductions each entry of an
item is a thread (`geometry.spread`: rows are items). With reductions each group is computed by the threads of one y of
a block, which are one, or as of `over_row`; they go through its entries as often as there are passes, and compute again
what they need again. A sum is taken in float64 after every 64 entries. So it does not depend on what
other rows there are, though on the number of threads.
"""

from __future__ import annotations

import re
from itertools import count

from edbatch.kernels.language.analysis import analysis_of
from edbatch.kernels.language.cuda_values import Values
from edbatch.kernels.language.given import INTEGER
from edbatch.kernels.language.ir import (
    Integer,
    Kernel,
    Load,
    Reduce,
    StoreLargest,
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
    const long long step = (long long)gridDim.x * blockDim.y;
    #pragma unroll 1  // unrolling would count the turns first: a 64-bit division
    for (long long at = own_row(); at < items * each; at += step) {{
        {lines}
    }}
}}
"""
_ACCUMULATORS = {"sum": "Sum<{type}>", "max": "Largest<{type}>", "min": "Smallest<{type}>", "first": "First"}


def source_of(kernel: Kernel, name: str = "kernel") -> str:
    """The kernel as text, after common.cu.

    Example:
        >>> from edbatch.kernels.language.ir import NEXT, Compute, Kernel, Load, Place, Store
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


class _Writer(Values):
    """Its loops."""

    def text(self, name: str) -> str:
        kernel = self.kernel
        items = "const long long items = n;"
        if self.of_items:
            offsets = f"(const {self.index}*)given.v[{kernel.list_axis}]"
            items = (
                f"const {self.index}* const offsets = {offsets};\n    const long long items = offsets[n] - offsets[0];"
            )
        self._begin()
        if self.grouped:
            self._group()
        else:
            self._entry()
        shape, indent = (GROUPS, 8) if self.grouped else (ENTRIES, 4)
        lines = f"\n{' ' * indent}".join(_used(self.lines))
        return shape.format(name=name, words=self.given.words, items=items, each=self.product(self.axes), lines=lines)

    def _begin(self) -> None:
        """The row, the indices of the group (or entry), and where rows begin."""
        kernel, lines = self.kernel, self.lines
        if self.grouped:
            lines.append(f"const long long item = {'divided(at, each)' if self.axes else 'at'};")
            lines.append("const long long column = at - item * each;")
        else:
            lines.append(f"if (column >= {self.product(self.axes)}) return;")
        if self.of_items:
            lines += [
                "const long long element = item + offsets[0];",
                "const long long i = row_of(offsets, n, element);",
            ]
            lines.append(f"const long long x{kernel.list_axis} = element - offsets[i];")
        else:
            lines.append("const long long i = item;")
        if kernel.list_axis is not None:
            lines.append(f"const {self.index}* const list = (const {self.index}*)given.v[{kernel.list_axis}] + i;")
            lines.append("const long long list_size = list[1] - list[0];")
        self.indices("column", self.axes)
        self.rows(elements=False)
        if self.of_items:
            self.rows(elements=True)
        for number_, step in enumerate(kernel.instructions):
            if isinstance(step, Integer):
                at = self.given.integers + INTEGER * step.number
                text = f"*(const {self.index}*)(given.v[{at}] + i * given.v[{at + 1}])"
                lines.append(f"const long long v{number_} = {text};")
                self.defined.add(number_)

    def _entry(self) -> None:
        analysis = self.analysis
        self.need([store.value for store in self.kernel.stores])
        for store in (*analysis.entry_stores, *analysis.group_stores):
            self.store(store, "")

    def _group(self) -> None:
        analysis = self.analysis
        largest = next((store for store in self.kernel.stores if isinstance(store, StoreLargest)), None)
        if largest is not None:
            load = self.kernel.instructions[largest.value]
            assert isinstance(load, Load)
            size, count = self.size(self.kernel.outer), self.at_column(largest.count)
            self.lines.append(f"sort_largest({self.group(load)}, {size}, {self.group(largest)}, {count});")
            return
        for pass_, reductions in enumerate(analysis.reductions):
            for value in reductions:
                step = self.kernel.instructions[value]
                assert isinstance(step, Reduce)
                accumulator = _ACCUMULATORS[step.function].format(type=self.float)
                self.lines.append(f"{accumulator} r{value};")
            needed = analysis.closure(analysis.roots(pass_), self.defined)
            self.need(value for value in needed if not analysis.is_entry(value))
            self.lines += self._pass(pass_, reductions)
            for value in reductions:
                kind = "long long" if analysis.types[value] == "integer" else self.float
                self.lines.append(f"const {kind} v{value} = r{value}.over_lanes();")
                self.defined.add(value)
        # What is stored is read there, too: other threads would read what this one writes.
        around, self.lines = self.lines, []
        self.need([store.value for store in analysis.group_stores])
        for store in analysis.group_stores:
            self.store(store, "")
        if self.lines:
            around += ["if (threadIdx.x == 0) {", *(f"    {line}" for line in self.lines), "}"]
        self.lines = around

    def _begin_entry(self) -> None:
        """The indices of entry k of a group, and where the rows of its element begin."""
        self.indices("k", sorted(self.analysis.inner))
        if self.kernel.list_axis in self.analysis.inner:
            self.rows(elements=True)

    def _pass(self, pass_: int, reductions: list[int]) -> list[str]:
        """The lines of a pass over a group's entries k."""
        analysis = self.analysis
        around, before, self.lines = self.lines, self.defined.copy(), []
        self._begin_entry()
        self.need(analysis.roots(pass_))
        for value in reductions:
            step = self.kernel.instructions[value]
            assert isinstance(step, Reduce)
            given = f"{self.truth(step.value)}, k" if step.function == "first" else self.number(step.value)
            self.lines.append(f"r{value}.take({given});")
        functions = [("", self.lines)]
        if pass_ == len(analysis.reductions) - 1 and analysis.entry_stores:
            # Values first, stores later: what may lie where something is stored is not read before that is done.
            stores = analysis.entry_stores
            kind = f"Stored<{self.float}, {sum(len(store.reads) for store in stores)}>"
            given = ", ".join(self.number(value) for store in stores for value in store.reads)
            self.lines.append(f"return {kind}{{{{{given}}}}};")
            self.lines = []
            self._begin_entry()
            numbers = (f"stored.v[{at}]" for at in count())
            for store in stores:
                self.store(store, "", *(next(numbers) for _ in store.reads))
            functions.append((f", const {kind}& stored", self.lines))
        self.lines, self.defined = around, before
        found = f"each_entry({self.product(sorted(analysis.inner))}"
        lines = []
        for more, body in functions:
            used = _used(body)
            k = " k" if any(re.search(r"\bk\b", line) for line in used) else ""
            lines += [f"{found}, [&](long long{k}{more}) {{", *(f"    {line}" for line in used)]
            found = "}"
        return [*lines, "});"]


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
