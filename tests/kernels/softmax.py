"""A kernel of whole rows, for tests: a softmax."""

from __future__ import annotations

from functools import cache

from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, Kernel, Load, Place, Store


@cache
def softmax(logarithm: bool, dtype: str = "float32") -> Kernel:
    """The softmax of a row, or its logarithm: of place and column 0, to place and column 1.

    Example:
        >>> softmax(False).inner
        1
    """
    make = Builder()
    x = make.add(Load(0, (NEXT,), 0))
    shifted = make.compute("subtract", x, make.reduce("max", x))
    power = make.compute("exp", shifted)
    total = make.reduce("sum", power)
    text = "shifted - log(total)" if logarithm else "power * (1 / total)"
    value = make.expression(text, shifted=shifted, power=power, total=total)
    return Kernel(0, 1, (Place(), Place()), make.instructions, (Store(value, 1, (NEXT,), column=1),), dtype=dtype)
