"""Kernels of single ops as CUDA C++: what `row_ops` says of an op, with shapes and the layouts of rows as constants."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from edbatch.kernels.call import Call, Layout, Work
from edbatch.kernels.cuda.row_ops import Parts, all_entries, plan_of
from edbatch.kernels.language.cuda_functions import number as literal

KERNEL = """
extern "C" __global__ void {name}(long long n, {integers}, {places}) {
    const Turns turns;
    #pragma unroll 1  // unrolling would count the turns first: a 64-bit division
    for (long long turn = turns.first; turn < n * {groups}; turn += turns.step) {
        const long long at = turns.row(turn, n * {groups});
        const bool mine = turns.mine(turn, n * {groups});
        const long long i = at / {groups};
        {lines}
    }
}
"""


def work_of(call: Call) -> Work:
    """How the work of a call's kernel is shared out."""
    plan = plan_of(call)
    return Work(plan.groups, plan.lanes)


def source_of(call: Call, name: str) -> str:
    """The kernel as CUDA C++, after common.cu: `extern "C" __global__ void NAME(n, integers, p0, d0, i0, p1, ...)`.

    Operands, then the result, are places: row i begins at entry i[i] * d of the array p, or at i * d where the list i
    is null. Blocks are `lanes` threads wide (see `work_of`), of any height; a grid of any size computes all.

    Args:
        call: what it computes.
        name: of the kernel.

    Example:
        >>> row = Layout((2, 3), (3, 1))
        >>> call = Call("sum", "", (("axes", (1,)), ("keepdims", False)), (row,), Layout((2,), (1,)))
        >>> print(source_of(call, "total").split("at / 2;")[1])
        <BLANKLINE>
                const unsigned g = at % 2;
                const long long r0 = (i0 ? i0[i] : i) * d0;
                const auto x0 = [&](unsigned k) { return p0[r0 + (int)(g * 3u + k)]; };
                const Group<1> group = {3};
                const float value = [&]() -> float { return group.sum(x0); }();
                const long long r1 = (i1 ? i1[i] : i) * d1;
                if (mine) p1[r1 + (int)(g)] = value;
            }
        }
    """
    plan = plan_of(call)
    lanes, entries, last = plan.lanes, plan.entries, len(plan.operands)
    lane = "threadIdx.x" if lanes > 1 else "0"
    integer = "integers[i]" if call.integer is None else f"{call.integer}"
    out_row = f"const long long r{last} = (i{last} ? i{last}[i] : i) * d{last};"
    out = f"p{last}[r{last} + {_position(call.out, plan.out)}]"
    lines = [f"const unsigned g = at % {plan.groups};", f"const unsigned integer = {integer};", *plan.before]
    for at, (operand, parts) in enumerate(zip(call.operands, plan.operands, strict=True)):
        position = _position(operand, parts)
        given = "unsigned k" if _uses(position, "k") else "unsigned" if any(part[0] == "k" for part in parts) else ""
        lines.append(f"const long long r{at} = (i{at} ? i{at}[i] : i) * d{at};")
        lines.append(f"const auto x{at} = [&]({given}) {{ return p{at}[r{at} + {position}]; }};")
    numbers = [(name, value) for name, value in call.attributes if isinstance(value, float)]
    lines += [f"const float {name} = {literal(value, call.dtype)};" for name, value in numbers]
    lines.append(f"const Group<{lanes}> group = {{{entries}}};")
    computed = re.sub(r"\b(sum|largest|smallest)\(", r"group.\1(", plan.code)
    if "EACH" in plan.code:
        each = f"for (unsigned k = {lane}; mine && k < {entries}; k += {lanes}) {out} ="
        code = [out_row, computed.replace("EACH", each)]
    else:
        first = f" && {lane} == 0" if lanes > 1 else ""
        code = [f"const float value = [&]() -> float {{ {computed} }}();", out_row, f"if (mine{first}) {out} = value;"]
    lines = _with_definitions(lines, code)
    integers = "const int* integers" if any("integers[" in line for line in lines) else "const int*"
    places = [f"const float* __restrict__ p{at}, long long d{at}, const int* i{at}" for at in range(last)]
    places.append(f"float* __restrict__ p{last}, long long d{last}, const int* i{last}")
    text = (
        KERNEL.replace("{integers}", integers)
        .replace("{places}", ", ".join(places))
        .replace("{groups}", str(plan.groups))
        .replace("{lines}", "\n        ".join(lines))
    )
    return (text if call.dtype == "float32" else _in_double(text)).replace("{name}", name)


def _in_double(text: str) -> str:
    """The same with numbers of 64 bits: types, literals, and the functions that end in f."""
    text = re.sub(r"\bfloat\b", "double", text)
    text = re.sub(r"(?<![\w.])(\d+\.\d*(?:e[-+]?\d+)?)f\b", r"\1", text)
    return re.sub(r"\b(exp|log|log1p|fabs|sqrt)f\(", r"\1(", text)


def _uses(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _with_definitions(lines: list[str], code: list[str]) -> list[str]:
    """Lines of definitions before code; without those that nothing uses, of which compilers would warn."""
    kept = code
    for line in reversed(lines):
        found = re.match(r"const (?:[\w<>]+ )+(\w+) = ", line)
        if found is not None and any(_uses(other, found[1]) for other in kept):
            kept = [line, *kept]
    return kept


def _position(layout: Layout, parts: Parts) -> str:
    """Where an entry lies, counted from its row's first."""
    terms = [term for part in parts for term in _terms(*part)]
    if layout.first:
        terms.append(f"{layout.first}u")
    found = f"(int)({' + '.join(terms) or '0'})"
    if layout.stored is None:
        return found
    return _position(layout.stored, all_entries(f"((unsigned){found})", layout.stored))


def _terms(variable: str, sizes: Sequence[int], strides: Sequence[int]) -> list[str]:
    """What to add up for the position of entry number `variable` of an array, numbered row by row."""
    axes: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == stride * size:  # goes on where the axis before has its next entry
            axes[-1] = axes[-1][0] * size, stride
        else:
            axes.append((size, stride))
    terms = []
    inner = math.prod(size for size, _ in axes)
    for number, (size, stride) in enumerate(axes):
        inner //= size
        index = variable if inner == 1 else f"{variable} / {inner}u"
        if number > 0:
            index = f"{index} % {size}u"
        if stride != 0:
            factor = f"{stride}u" if stride > 0 else f"({stride})"
            text = index if index == variable else f"({index})"
            text = text if stride > 0 else f"(int){text}"
            terms.append(text if stride == 1 else f"{text} * {factor}")
    return terms
