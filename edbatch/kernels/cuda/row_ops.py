"""What kernels of single ops compute: for each op of the op table, of a row, in CUDA C++."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edbatch.errors import EdBatchError
from edbatch.kernels.call import Call, Layout
from edbatch.kernels.language.cuda_functions import expression, number

MOST_OPERANDS = 100  # CUDA passes no more than 4,096 bytes
MOST_ENTRIES = 2**31 - 1  # of a row: kernels number them by 32 bits

#: (variable, sizes and strides of the axes that it numbers the entries of): where an operand's entry lies.
Parts = tuple[tuple[str, Sequence[int], Sequence[int]], ...]


@dataclass(frozen=True)
class Plan:
    """What a kernel computes.

    Attributes:
        code: returns the value of group g of row i; or, after EACH, says what its entry k is. Operands are x0(), x1(),
            or x0(k) for the k-th entry of the group; `sum`, `largest` and `smallest` are over the group's entries;
            `integer` is that of the row.
        groups: of a row.
        entries: of a group.
        operands, out: where they lie, by g, k, and what `before` defines.
        before: lines before the operands are defined.
    """

    code: str
    groups: int
    entries: int
    operands: tuple[Parts, ...]
    out: Parts
    before: tuple[str, ...] = ()

    @property
    def lanes(self) -> int:
        """Threads for a group: neighbours in a group, unless neighbouring groups are enough, and neighbours too."""
        if self.entries <= 16:
            return 1
        of_entries = [strides[-1] for x in self.operands for name, _, strides in x if name == "k" and strides]
        if self.groups >= 32 and any(stride != 1 for stride in of_entries):
            return 1
        return 32 if self.entries <= 1024 else 256


def plan_of(call: Call) -> Plan:
    """What an op's kernel computes.

    Raises:
        EdBatchError: a row spans more than `MOST_ENTRIES`.
    """
    for layout in (*call.operands, call.out):
        if max(layout.size, layout.span) > MOST_ENTRIES:
            raise EdBatchError(f"{call.op}: expected at most {MOST_ENTRIES} entries on a GPU, got shape {layout.shape}")
    return PLANS[call.op](call) if call.op in PLANS else _elementwise(call)


def computes(op: str, scalar: str, operands: int) -> bool:
    """Whether there is a kernel for an op of so many operands."""
    return (bool(scalar) or op in PLANS) and operands <= MOST_OPERANDS


def all_entries(variable: str, layout: Layout) -> Parts:
    """One variable that numbers all entries, row by row."""
    return ((variable, layout.shape, layout.strides),)


def _axes(layout: Layout, axes: Sequence[int], inside: str = "k", outside: str = "g") -> Parts:
    """Some axes numbered by one variable, the others by another."""
    listed = [(outside, [a for a in range(len(layout.shape)) if a not in axes]), (inside, list(axes))]
    return tuple((name, [layout.shape[a] for a in of], [layout.strides[a] for a in of]) for name, of in listed)


def _broadcast(layout: Layout, shape: tuple[int, ...]) -> Parts:
    """Entry g of `shape`, as NumPy broadcasts."""
    strides = [0 if size == 1 else stride for size, stride in zip(layout.shape, layout.strides, strict=True)]
    return (("g", shape, [0] * (len(shape) - len(strides)) + strides),)


def _by_entries(call: Call, code: str, *operands: Parts, before: Sequence[str] = ()) -> Plan:
    """Every entry of the result by itself."""
    return Plan(code, call.out.size, 1, operands, all_entries("g", call.out), tuple(before))


def _elementwise(call: Call) -> Plan:
    names = {name: f"x{at}()" for at, name in zip(range(len(call.operands)), "xyz", strict=False)}
    names |= {name: number(float(value), call.dtype) for name, value in call.attributes}
    text = expression(call.scalar, names, call.dtype)
    return _by_entries(call, f"return {text};", *(_broadcast(x, call.out.shape) for x in call.operands))


def _list(code: Callable[[list[str]], str]) -> Callable[[Call], Plan]:
    """A reduction of a list of operands; `code` gets them."""

    def plan(call: Call) -> Plan:
        names = [f"x{at}()" for at in range(len(call.operands))]
        return _by_entries(call, code(names), *(all_entries("g", x) for x in call.operands))

    return plan


def _nested(function: str, names: list[str]) -> str:
    text = names[0]
    for name in names[1:]:
        text = f"{function}({text}, {name})"
    return text


def _log_sum_exp(names: list[str]) -> str:
    total = " + ".join(f"expf({name} - top)" for name in names)
    return f"const float top = finite({_nested('maximum', names)}); return logf({total}) + top;"


def _copy(call: Call) -> Plan:
    return _by_entries(call, "return x0();", all_entries("g", call.operands[0]))


def _pick(call: Call) -> Plan:
    (x,) = call.operands
    return _by_entries(call, "return x0();", _axes(x, range(1, len(x.shape)), inside="g", outside="integer"))


def _unpick(call: Call) -> Plan:
    (x,) = call.operands
    code = f"return g / {x.size} == integer ? x0() : 0.0f;"
    return _by_entries(call, code, all_entries(f"(g % {x.size})", x))


def _embed(call: Call) -> Plan:
    """Of an entry, the index on each axis says whether the operand has it, and where."""
    attributes = dict(call.attributes)
    shape, index = attributes["shape_to"], attributes["index"]
    before, tests, parts, inner = [], [], [], math.prod(shape)
    axes = iter(range(len(call.operands[0].shape)))
    for axis, (size, part) in enumerate(zip(shape, index, strict=True)):
        inner //= size
        before.append(f"const int c{axis} = g / {inner} % {size};")
        if isinstance(part, int):
            tests.append(f"c{axis} == {part % size}")
            continue
        start, stop, step = slice(*part).indices(size)
        length = len(range(start, stop, step))
        before.append(f"const int q{axis} = (c{axis} - ({start})) / ({step});")
        tests.append(f"q{axis} >= 0 && q{axis} < {length} && q{axis} * ({step}) + ({start}) == c{axis}")
        at = next(axes)
        parts.append((f"q{axis}", [length], [call.operands[0].strides[at]]))
    return _by_entries(call, f"return {' && '.join(tests) or 'true'} ? x0() : 0.0f;", tuple(parts), before=before)


def _outer(call: Call) -> Plan:
    a, b = call.operands
    return _by_entries(
        call, "return x0() * x1();", all_entries(f"(g / {b.size})", a), all_entries(f"(g % {b.size})", b)
    )


def _dropout(call: Call) -> Plan:
    rate = dict(call.attributes)["rate"]
    code = f"return (float)(x0() * (uniform(integer, g) >= {rate!r} ? {1 / (1 - rate)!r} : 0.0));"
    return _by_entries(call, code, all_entries("g", call.operands[0]))


def _matmul(call: Call) -> Plan:
    """Also `affine`, a product and a bias. A group's entries are those of a row of a and of a column of b."""
    a, b = call.operands[:2]
    columns = b.shape[1] if len(b.shape) == 2 else 1
    before = [f"const unsigned row = g / {columns};", f"const unsigned column = g % {columns};"]
    parts = [_axes(a, [len(a.shape) - 1], outside="row"), _axes(b, [0], outside="column")]
    code = "return sum([&](unsigned k) { return x0(k) * x1(k); });"
    if call.op == "affine":
        parts.append(all_entries("g", call.operands[2]))
        code = code[:-1] + " + x2();"
    return Plan(code, call.out.size, a.shape[-1], tuple(parts), all_entries("g", call.out), tuple(before))


def _over_axes(code: str) -> Callable[[Call], Plan]:
    """A reduction over the op's axes."""

    def plan(call: Call) -> Plan:
        (x,) = call.operands
        axes = dict(call.attributes)["axes"]
        entries = math.prod(x.shape[axis] for axis in axes)
        counted = code.replace("COUNT", f"{entries}.0f")
        return Plan(counted, call.out.size, entries, (_axes(x, axes),), all_entries("g", call.out))

    return plan


def _of_all(code: str) -> Callable[[Call], Plan]:
    """One number of all entries of the operands, which have one shape."""

    def plan(call: Call) -> Plan:
        operands = tuple(all_entries("k", x) for x in call.operands)
        return Plan(code, 1, call.operands[0].size, operands, ())

    return plan


def _along_axis(code: str) -> Callable[[Call], Plan]:
    """From the entries along an axis to as many."""

    def plan(call: Call) -> Plan:
        (x,) = call.operands
        axis = dict(call.attributes)["axis"]
        return Plan(code, x.size // x.shape[axis], x.shape[axis], (_axes(x, [axis]),), _axes(call.out, [axis]))

    return plan


def _layer_norm(call: Call) -> Plan:
    x, gain, bias = call.operands
    last = [len(x.shape) - 1]
    count = x.shape[-1]
    code = (
        f"const float mean = sum(x0) / {count}.0f; "
        "const auto centred = [&](unsigned k) { return x0(k) - mean; }; "
        "const float far = maximum(largest([&](unsigned k) { return fabsf(centred(k)); }), 1.0f); "
        "const auto squared = [&](unsigned k) { const float d = centred(k) / far; return d * d; }; "
        f"const float scale = 1.0f / (far * sqrtf(sum(squared) / {count}.0f + epsilon / (far * far))); "
        "EACH centred(k) * scale * x1(k) + x2(k);"
    )
    return Plan(
        code,
        x.size // count,
        count,
        (_axes(x, last), all_entries("k", gain), all_entries("k", bias)),
        _axes(call.out, last),
    )


_DIFFERENCE = "const float d = x0(k) - x1(k); "
_TOTAL = "sum([&](unsigned k) { return expf(x0(k) - top); })"

#: By the name of the op, what is computed of a row; the other ops are element-wise and have a `scalar`.
PLANS: dict[str, Callable[[Call], Plan]] = {
    "copy": _copy,
    "pick": _pick,
    "unpick": _unpick,
    "embed": _embed,
    "outer": _outer,
    "dropout": _dropout,
    "matmul": _matmul,
    "affine": _matmul,
    "layer_norm": _layer_norm,
    "sum": _over_axes("return sum(x0);"),
    "mean": _over_axes("return sum(x0) / COUNT;"),
    "max": _over_axes("return largest(x0);"),
    "min": _over_axes("return smallest(x0);"),
    "logsumexp": _over_axes(f"const float top = finite(largest(x0)); return logf({_TOTAL}) + top;"),
    "std": _over_axes(
        "const float mean = sum(x0) / COUNT; "
        "const float far = largest([&](unsigned k) { return fabsf(x0(k) - mean); }); "
        "const auto squared = [&](unsigned k) { const float d = (x0(k) - mean) / far; return d * d; }; "
        "return far == 0.0f ? 0.0f : far * sqrtf(sum(squared) / COUNT);"
    ),
    "norm": _over_axes("return sqrtf(sum([&](unsigned k) { return x0(k) * x0(k); }));"),
    "softmax": _along_axis(
        f"const float top = largest(x0); const float scale = 1.0f / {_TOTAL}; EACH expf(x0(k) - top) * scale;"
    ),
    "log_softmax": _along_axis(
        f"const float top = largest(x0); const float shift = logf({_TOTAL}); EACH x0(k) - top - shift;"
    ),
    "dot": _of_all("return sum([&](unsigned k) { return x0(k) * x1(k); });"),
    "cross_entropy": _of_all(f"const float top = largest(x0); return logf({_TOTAL}) - (x0(integer) - top);"),
    "hinge": _of_all(
        "const float right = x0(integer); "
        "return sum([&](unsigned k) { return k == integer ? 0.0f : maximum(x0(k) - right + margin, 0.0f); });"
    ),
    "binary_cross_entropy": _of_all(
        "return sum([&](unsigned k) { "
        "const float yes = maximum(logf(x0(k)), -100.0f), no = maximum(log1pf(-x0(k)), -100.0f); "
        "return -(x1(k) * yes + (1.0f - x1(k)) * no); });"
    ),
    "squared_distance": _of_all(f"return sum([&](unsigned k) {{ {_DIFFERENCE}return d * d; }});"),
    "l1_distance": _of_all("return sum([&](unsigned k) { return fabsf(x0(k) - x1(k)); });"),
    "huber": _of_all(
        f"return sum([&](unsigned k) {{ {_DIFFERENCE}const float s = fabsf(d); "
        "return s <= delta ? 0.5f * s * s : delta * (s - 0.5f * delta); });"
    ),
    "sum_list": _list(lambda xs: f"return {' + '.join(xs)};"),
    "mean_list": _list(lambda xs: f"return ({' + '.join(xs)}) / {len(xs)}.0f;"),
    "maximum_list": _list(lambda xs: f"return {_nested('maximum', xs)};"),
    "minimum_list": _list(lambda xs: f"return {_nested('minimum', xs)};"),
    "logsumexp_list": _list(_log_sum_exp),
}
