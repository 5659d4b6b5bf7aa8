"""Kernels for GPUs, in CUDA C++: void kernel(long long n, Given<words> given), see `given` and common.cu.

An ITEM is a row, or, if the list axis numbers groups, an element of a row's list. Without reductions each entry of an
item is a thread (`geometry.spread`: rows are items). With reductions each group is computed by the threads of one y of
a block, which are one, or as of `over_row`; they go through its entries as often as there are passes, and compute again
what they need again. A sum is taken in float64 after every 64 entries. So it does not depend on what
other rows there are, though on the number of threads.
"""

from __future__ import annotations

from itertools import count

from edbatch.kernels.language.code import Value
from edbatch.kernels.language.cuda_code import Cuda
from edbatch.kernels.language.given import PLACE, given_of
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.language.values import Values

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
            const float v0 = *(p0 + x0);
            const float v1 = tanhf(v0);
            *(p1 + x0) = v1;
        }
        <BLANKLINE>
    """
    given = [Value("i64", f"given.v[{word}]") for word in range(given_of(kernel).words)]
    return _Writer(kernel, Cuda("float" if kernel.dtype == "float32" else "double"), given).text(name)


class _Writer(Values):
    """Its loops, and what threads do."""

    def text(self, name: str) -> str:
        kernel, analysis = self.kernel, self.analysis
        of_item = analysis.outer if analysis.grouped else analysis.outer | analysis.inner
        of_items = kernel.list_axis in of_item  # items are elements of lists, not rows
        axes = sorted(of_item - {kernel.list_axis})  # that number the groups (or entries) of an item
        self.index |= {axis: Value("i64", f"x{axis}") for axis in range(kernel.axes)}
        items, list_type = "const long long items = n;", "const int*"
        if kernel.list_axis is not None:
            self.sizes[kernel.list_axis] = Value("i64", "list_size")
        if of_items:
            items = f"{list_type} const offsets = ({list_type})given.v[{kernel.list_axis}];"
            items += "\n    const long long items = offsets[n] - offsets[0];"
        self._begin(axes, of_items, list_type)
        if self.largest is not None:
            places, numbers = self.of_largest()
            self._line(f"sort_largest({', '.join(x.name for x in (*places, *numbers))});")
        elif analysis.grouped:
            self._group()
        else:
            self.hoist(store.value for store in kernel.stores)
            self.write([*analysis.entry_stores, *analysis.group_stores])
        shape, indent = (GROUPS, 8) if analysis.grouped else (ENTRIES, 4)
        lines = f"\n{' ' * indent}".join(self.code.lines)
        return shape.format(name=name, words=self.words.words, items=items, each=self._product(axes), lines=lines)

    def _line(self, text: str) -> None:
        self.code.lines.append(text)

    def _product(self, axes: list[int]) -> str:
        """Of the sizes of axes."""
        return " * ".join(self.sizes[axis].name for axis in axes) or "1ll"

    def _begin(self, axes: list[int], of_items: bool, list_type: str) -> None:
        """The row, the indices of the group (or entry), and where rows begin."""
        list_axis = self.kernel.list_axis
        if self.analysis.grouped:
            self._line(f"const long long item = {'divided(at, each)' if axes else 'at'};")
            self._line("const long long column = at - item * each;")
        else:
            self._line(f"if (column >= {self._product(axes)}) return;")
        if of_items:
            self._line("const long long element = item + offsets[0];")
            self._line("const long long i = row_of(offsets, n, element);")
            self._line(f"{list_type} const list = offsets + i;")
            self._line(f"const long long x{list_axis} = element - list[0];")
        else:
            self._line("const long long i = item;")
            if list_axis is not None:
                self._line(f"{list_type} const list = ({list_type})given.v[{list_axis}] + i;")
        if list_axis is not None:
            self._line("const long long list_size = list[1] - list[0];")
        self._indices("column", axes)
        self._begin_rows(elements=False)
        if of_items:
            self._begin_rows(elements=True)
        self.integers(Value("i64", "i"))

    def _indices(self, variable: str, axes: list[int]) -> None:
        """The indices along axes of the entry that a variable numbers."""
        rest = variable
        for axis in reversed(axes):
            if axis == axes[0]:
                self._line(f"const long long x{axis} = {rest};")
                break
            size = self.sizes[axis].name
            self._line(f"const long long q{axis} = divided({rest}, {size});")
            self._line(f"const long long x{axis} = {rest} - q{axis} * {size};")
            rest = f"q{axis}"

    def _begin_rows(self, elements: bool) -> None:
        """Where the row begins in each place, or (`elements`) the row of the element."""
        row = Value("i64", f"list[0] + x{self.kernel.list_axis}" if elements else "i")
        self.rows |= {place: self.row(place, row) for place in self.places(elements)}

    def row(self, place: int, row: Value) -> Value:
        at = self.words.places + PLACE * place
        const = "" if place in {store.place for store in self.kernel.stores} else "const "
        text = f"row_at<{self.number}>(given.v + {at}, (const int*)given.v[{at + 2}], {row.name})"
        self._line(f"{const}{self.number}* const p{place} = {text};")
        return Value(f"{self.number}*", f"p{place}")

    def entry_number(self) -> Value:
        return Value("i64", "k")

    def _group(self) -> None:
        """Passes over its entries."""
        analysis, code = self.analysis, self.code
        for pass_, reductions in enumerate(analysis.reductions):
            for value in reductions:
                accumulator = _ACCUMULATORS[self.reduction(value).function].format(type=self.number)
                self._line(f"{accumulator} r{value};")
            needed = analysis.closure(analysis.roots(pass_), self.known)
            self.hoist(value for value in needed if not analysis.is_entry(value))
            self._pass(pass_, reductions)
            for value in reductions:
                kind = "i64" if self.reduction(value).function == "first" else self.number
                self.known[value] = code.named(Value(kind, f"r{value}.over_lanes()"), f"v{value}")
        # What is stored is read there, too: other threads would read what this one writes.
        with code.when(Value("i1", "threadIdx.x == 0")):
            self.hoist(store.value for store in analysis.group_stores)
            self.write(analysis.group_stores)

    def _begin_entry(self) -> None:
        """The indices of entry k of a group, and where the rows of its element begin."""
        self._indices("k", sorted(self.analysis.inner))
        if self.kernel.list_axis in self.analysis.inner:
            self._begin_rows(elements=True)

    def _pass(self, pass_: int, reductions: list[int]) -> None:
        """A pass over a group's entries k."""
        analysis, code = self.analysis, self.code
        around, before, code.lines = code.lines, self.known.copy(), []
        self._begin_entry()
        self.hoist(analysis.roots(pass_))
        for value in reductions:
            step = self.reduction(value)
            is_first = step.function == "first"
            given = code.converted(self.known[step.value], "i1" if is_first else self.number).name
            self._line(f"r{value}.take({given}{', k' if is_first else ''});")
        functions = [("", code.lines)]
        if pass_ == len(analysis.reductions) - 1 and analysis.entry_stores:
            # Values first, stores later: what may lie where something is stored is not read before that is done.
            stores = analysis.entry_stores
            kind = f"Stored<{self.number}, {sum(len(store.reads) for store in stores)}>"
            values = [code.converted(self.known[value], self.number).name for store in stores for value in store.reads]
            self._line(f"return {kind}{{{{{', '.join(values)}}}}};")
            code.lines = []
            self._begin_entry()
            numbers = (Value(self.number, f"stored.v[{at}]") for at in count())
            for store in stores:
                self.put(store, *(next(numbers) for _ in store.reads))
            functions.append((f", const {kind}& stored", code.lines))
        code.lines, self.known = around, before
        found = f"each_entry({self._product(sorted(analysis.inner))}"
        for more, body in functions:
            code.lines += [f"{found}, [&](long long k{more}) {{", *(f"    {line}" for line in body)]
            found = "}"
        self._line("});")
