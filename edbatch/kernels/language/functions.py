"""The table of scalar functions that kernels compute: what each means, and how each device computes it.

NaN, infinities and the sign of zero are NumPy's. On the CPU they are arithmetic that compilers turn into vector
instructions; errors, in units in the last place and over the whole range, against more exact numbers:

    float32: tanh 4.7, sigmoid 2.5, exp 1, expm1 1.5, log 1, log1p 1, sin and cos 1.6, erf 2.5, erfc 4.5
    float64: tanh 1.5, sigmoid 1.7, exp 1, expm1 1.3, log 0.9, log1p 0.9, power 1.4

In float64 sin, cos, erf and erfc are the C library's; the power of float32 is that of float64, rounded. On GPUs all
are CUDA's accurate ones.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from edbatch.kernels.language import double, single
from edbatch.kernels.language.elementary import DOUBLE, SINGLE, exp, expm1, log, log1p


@dataclass(frozen=True)
class Function:
    """A scalar function.

    Args:
        arguments: their names.
        meaning: an expression (see `expressions`) of other functions, for every dtype; empty if there is none.
        single: one for float32 on the CPU, in numbers of 32 and 64 bits and their bits (see `llvm_functions`).
        double: one for float64 on the CPU, and for float32 if that has none; without, it is the C library's.
        library: the name of the C library's function for float64, which CUDA has too (with an f for float32).
        cuda: a function of common.cu that is used instead.
        costly: takes so long that its value is kept, not computed again.
    """

    arguments: tuple[str, ...]
    meaning: str = ""
    single: str = ""
    double: str = ""
    library: str = ""
    cuda: str = ""
    costly: bool = False


def as_float32(number: float) -> float:
    """A number rounded to float32; what is too large is infinite."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        rounded = math.copysign(math.inf, number)
    return rounded


_X, _AB = ("x",), ("a", "b")

# What both languages have as an operator or instruction (see `llvm_code` and `cuda_code`).
_OPERATORS = {
    "same": _X, "negate": _X, "abs": _X, "floor": _X, "no": _X,
    **dict.fromkeys(("add", "subtract", "multiply", "divide"), _AB),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal", "equal", "different", "both", "either"), _AB),
    "select": ("test", "a", "b"),
}  # fmt: skip

_OF_BOTH = {"exp": exp, "expm1": expm1, "log": log, "log1p": log1p}

FUNCTIONS = {
    **{name: Function(arguments) for name, arguments in _OPERATORS.items()},
    "sqrt": Function(_X, library="sqrt", costly=True),
    "maximum": Function(_AB, "a if a >= b or a != a else b", cuda="maximum"),
    "minimum": Function(_AB, "a if a <= b or a != a else b", cuda="minimum"),
    # Equal, or both NaN: where the first of the largest entries is.
    "alike": Function(_AB, "a == b or (a != a and b != b)"),
    **{
        name: Function(_X, single=text(SINGLE), double=text(DOUBLE), library=name, costly=True)
        for name, text in _OF_BOTH.items()
    },
    "sigmoid": Function(_X, single=single.SIGMOID, double=double.SIGMOID, cuda="sigmoid", costly=True),
    "tanh": Function(_X, single=single.TANH, double=double.TANH, library="tanh", costly=True),
    "sin": Function(_X, single=single.SIN, library="sin", costly=True),
    "cos": Function(_X, single=single.COS, library="cos", costly=True),
    "erf": Function(_X, single=single.ERF, library="erf", costly=True),
    "erfc": Function(_X, single=single.ERFC, library="erfc", costly=True),
    "power": Function(_AB, double=double.POWER, library="pow", costly=True),
    # A number in [0, 1) of a row's seed and an entry's number, both integers.
    "uniform": Function(("seed", "position"), single.UNIFORM, cuda="uniform", costly=True),
}
