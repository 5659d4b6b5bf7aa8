"""Generated kernels against NumPy's own functions (SciPy's, where NumPy has none): both dtypes, one thread.

Rows are [256, 256]. A function is compared with NumPy's one call; what NumPy has no call for, with the calls that it
takes, written into arrays that are there (softmax, layer norm), or with those that a user would write (lists). Asked is
at most 1.2 times NumPy's time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from edbatch.experiments.measure import interleaved
from edbatch.kernels.cpu.machine_code import address_of
from edbatch.kernels.cpu.pointers import KERNEL
from edbatch.kernels.language.analysis import scratch_rows
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.functions import FUNCTIONS
from edbatch.kernels.language.given import filled
from edbatch.kernels.language.ir import NEXT, RUN, SAME, Kernel, Load, Place, Store
from scripts.bench.report import Tables, command

ROWS = WIDTH = 256
ASKED = 1.2


class Case(NamedTuple):
    """What is compared: two functions that leave the same in `out`."""

    ours: Callable[[], Any]
    numpys: Callable[[], Any]
    out: np.ndarray
    wanted: np.ndarray


def called(kernel: Kernel, n: int, sizes: list[int], places: list[Any], *given: Any) -> Callable[[], None]:
    """A kernel that is called; places are arrays, or (array, list of rows)."""
    words, alive = [], []
    for place in places:
        array, listed = place if isinstance(place, tuple) else (place, None)
        distance = array.strides[0] if array.ndim > 1 and len(array) > 1 else 0
        words.append((array.ctypes.data, distance, 0 if listed is None else listed.ctypes.data))
        alive += [array, listed]
    scratch = np.empty(scratch_rows(kernel) * WIDTH + 1, kernel.dtype)
    array = filled(kernel, sizes, words, *given, scratch=scratch.ctypes.data)
    function = KERNEL(address_of(kernel))  # once: to make it costs more than a call, and compiled loops need none
    words_address = array.ctypes.data

    def run(_alive: Any = (alive, scratch, array)) -> None:
        function(0, n, words_address)

    return run


def of_function(name: str) -> Kernel:
    """A scalar function of rows."""
    make = Builder()
    count = len(FUNCTIONS[name].arguments)
    value = make.compute(name, *(make.add(Load(place, (NEXT,))) for place in range(count)))
    return Kernel(1, 0, (Place(),) * (count + 1), make.instructions, (Store(value, count, (NEXT,)),))


def softmax() -> Kernel:
    """Of a row."""
    make = Builder()
    x = make.add(Load(0, (NEXT,)))
    power = make.compute("exp", make.compute("subtract", x, make.reduce("max", x)))
    value = make.compute("divide", power, make.reduce("sum", power))
    return Kernel(0, 1, (Place(), Place()), make.instructions, (Store(value, 1, (NEXT,)),))


def layer_norm() -> Kernel:
    """Of a row, with gain and bias."""
    make = Builder()
    x, gain, bias = (make.add(Load(place, (NEXT,))) for place in range(3))
    over = make.number(1 / WIDTH)
    d = make.compute("subtract", x, make.compute("multiply", make.reduce("sum", x), over))
    variance = make.compute("multiply", make.reduce("sum", make.compute("multiply", d, d)), over)
    scale = make.expression("1 / sqrt(v + epsilon)", v=variance, epsilon=make.number(1e-5))
    value = make.expression("d * scale * gain + bias", d=d, scale=scale, gain=gain, bias=bias)
    return Kernel(0, 1, (Place(),) * 4, make.instructions, (Store(value, 3, (NEXT,)),))


def reduction(function: str) -> Kernel:
    """Over a row."""
    make = Builder()
    value = make.reduce(function, make.add(Load(0, (NEXT,))))
    return Kernel(0, 1, (Place(), Place()), make.instructions, (Store(value, 1, (SAME,)),))


def column_sums() -> Kernel:
    """Over the first axis of a matrix."""
    make = Builder()
    value = make.reduce("sum", make.add(Load(0, (NEXT, RUN))))
    return Kernel(1, 1, (Place(), Place()), make.instructions, (Store(value, 1, (NEXT, SAME)),))


def list_sums() -> Kernel:
    """Of the rows of lists."""
    make = Builder()
    value = make.reduce("sum", make.add(Load(0, (NEXT, SAME))))
    return Kernel(1, 1, (Place(True), Place()), make.instructions, (Store(value, 1, (NEXT, SAME)),), list_axis=1)


def power_of(exponent: float) -> Kernel:
    """Of rows, with an exponent that is a part of the kernel."""
    make = Builder()
    value = make.compute("power", make.add(Load(0, (NEXT,))), make.number(exponent))
    return Kernel(1, 0, (Place(), Place()), make.instructions, (Store(value, 1, (NEXT,)),))


def cases(dtype: type[np.float32] | type[np.float64]) -> dict[str, Case]:
    """All that is compared."""
    random = np.random.default_rng(0)
    x = random.standard_normal((ROWS, WIDTH), dtype)
    y = np.abs(random.standard_normal((ROWS, WIDTH), dtype)) + dtype(0.1)
    found: dict[str, Case] = {}

    def compare(
        name: str, kernel: Kernel, arrays: list[Any], numpys: Callable[[np.ndarray], Any], *given: Any, **how: Any
    ) -> None:
        out, wanted = (np.zeros(how.get("shape", (ROWS, WIDTH)), dtype) for _ in range(2))
        kernel = replace(kernel, dtype=np.dtype(dtype).name)
        call = called(kernel, how.get("n", ROWS), how.get("sizes", [WIDTH]), [*arrays, out], *given)
        alive = how.get("alive")
        found[name] = Case(lambda _alive=alive: call(), lambda: numpys(wanted), out, wanted)

    ufuncs: dict[str, Any] = {
        name: getattr(np, name)
        for name in ("tanh", "exp", "log", "sqrt", "divide", "expm1", "log1p", "sin", "cos", "power")
    }
    ufuncs |= {"erf": scipy.special.erf, "erfc": scipy.special.erfc, "sigmoid": scipy.special.expit}
    for name, function in ufuncs.items():
        given = {"divide": [x, y], "power": [y, x]}.get(name, [y if name in ("log", "sqrt", "log1p") else x])
        compare(name, of_function(name), given, lambda out, function=function, given=given: function(*given, out=out))

    def numpys_softmax(out: np.ndarray) -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        out /= out.sum(axis=1, keepdims=True)

    compare("power of 3", power_of(3), [y], lambda out: np.power(y, dtype(3), out=out))
    compare("softmax, last axis", softmax(), [x], numpys_softmax)
    gain, bias = y[0].copy(), x[0].copy()

    def numpys_layer_norm(out: np.ndarray) -> None:
        np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
        scale = 1 / np.sqrt((out * out).mean(axis=1, keepdims=True) + dtype(1e-5))
        out *= scale
        out *= gain
        out += bias

    compare("layer norm", layer_norm(), [x, gain, bias], numpys_layer_norm)
    for function, reduce in {"sum": np.sum, "max": np.max}.items():
        kernel, shape = reduction(function), (ROWS, 1)
        compare(f"{function}, last axis", kernel, [x], lambda out, r=reduce: r(x, axis=1, out=out[:, 0]), shape=shape)
    matrix = x.reshape(1, -1)
    how = {"shape": (1, WIDTH), "n": 1, "sizes": [WIDTH, ROWS]}
    compare("sum, first axis", column_sums(), [matrix], lambda out: np.sum(x, axis=0, out=out[0]), [WIDTH], **how)
    rows = random.integers(0, ROWS, ROWS).astype(np.int32)
    compare("gather of rows + add", of_function("add"), [(x, rows), y], lambda out: np.add(x[rows], y, out=out))
    lengths = random.integers(2, 21, ROWS)
    offsets = np.cumsum([0, *lengths]).astype(np.int32)
    elements = random.standard_normal((1000, 64), dtype)
    listed = random.integers(0, 1000, offsets[-1]).astype(np.int32)

    def numpys_list_sums(out: np.ndarray) -> None:
        np.add.reduceat(elements[listed], offsets[:-1], axis=0, out=out)

    how = {"shape": (ROWS, 64), "sizes": [64, offsets.ctypes.data], "alive": offsets}
    compare("sums of lists of 2 to 20 rows of 64", list_sums(), [(elements, listed)], numpys_list_sums, **how)
    return found


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    found = {}
    for dtype, tolerance in ((np.float32, 2e-5), (np.float64, 1e-12)):
        rows = []
        for name, case in cases(dtype).items():
            case.ours(), case.numpys()
            np.testing.assert_allclose(case.out, case.wanted, rtol=tolerance, atol=tolerance, err_msg=name)
            rows.append({"kernel": name, **_compared(case, options)})
        slowest = max(rows, key=lambda row: row["ratio"])
        title = f"Generated kernels, {np.dtype(dtype)}; slowest {slowest['kernel']}"
        found[f"{title}, asked at most {ASKED} times NumPy's time"] = rows
    return found


def _compared(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """The rest of a case's row."""

    def often(function: Callable[[], Any]) -> Callable[[], None]:
        return lambda: [function() for _ in range(options.repeats)] and None

    runs = interleaved({"ours": often(case.ours), "NumPy": often(case.numpys)}, options.rounds)
    ours, numpys = (min(runs[which].cpu) / options.repeats for which in ("ours", "NumPy"))
    return {"us": 1e6 * ours, "NumPy's us": 1e6 * numpys, "ratio": ours / numpys}


main = command(__doc__, tables, repeats={"type": int, "default": 50, "help": "calls in one measurement (default: 50)"})

if __name__ == "__main__":
    main()
