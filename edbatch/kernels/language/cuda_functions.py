"""Scalar functions in CUDA C++: the table's names there, or their meanings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from edbatch.errors import EdBatchError
from edbatch.kernels.language.expressions import evaluate
from edbatch.kernels.language.functions import FUNCTIONS, as_float32

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

    Example:
        >>> function("tanh", ["v0"]), function("select", ["v0", "v1", "v2"])
        ('tanhf(v0)', '(v0 ? v1 : v2)')
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
