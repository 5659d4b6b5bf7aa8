"""Functions of one number that vectorise inside fused kernels, in float32.

Errors against float64, over the whole range: tanh 4.4 units in the last place, exp 1, sigmoid 2.5. NaN
stays NaN; `minimum` and `maximum` pass it on, as NumPy's do.
"""

# mypy: disable-error-code="no-untyped-def,call-arg"

from __future__ import annotations

import math
from typing import Any

from numba import float32, int32
from numba.core import types
from numba.extending import intrinsic

from edbatch.compiled import compiled


@intrinsic
def _bits_to_float(context, bits):
    """An int32's bits as a float32."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def tanh(x: Any) -> Any:
    """Hyperbolic tangent: a rational approximation of degree 13 over 6 (Eigen's), constant beyond 7.9."""
    limit = float32(7.90531110763549805)
    x = -limit if x < -limit else x
    x = limit if x > limit else x
    square = x * x
    p = float32(-2.76076847742355e-16)
    p = p * square + float32(2.00018790482477e-13)
    p = p * square + float32(-8.60467152213735e-11)
    p = p * square + float32(5.12229709037114e-08)
    p = p * square + float32(1.48572235717979e-05)
    p = p * square + float32(6.37261928875436e-04)
    p = p * square + float32(4.89352455891786e-03)
    q = float32(1.19825839466702e-06)
    q = q * square + float32(1.18534705686654e-04)
    q = q * square + float32(2.26843463243900e-03)
    q = q * square + float32(4.89352518554385e-03)
    return x * p / q


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def _mantissa(x: Any, n: Any) -> Any:
    """eˣ / 2ⁿ, for the integer n next to x / log 2: a polynomial of degree 6 on [-½ log 2, ½ log 2] (Cephes)."""
    r = x - n * float32(0.693359375)
    r = r - n * float32(-2.12194440e-4)
    p = float32(1.9875691500e-4)
    p = p * r + float32(1.3981999507e-3)
    p = p * r + float32(8.3334519073e-3)
    p = p * r + float32(4.1665795894e-2)
    p = p * r + float32(1.6666665459e-1)
    p = p * r + float32(5.0000001201e-1)
    return p * r * r + r + float32(1)


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def _exponent(x: Any) -> Any:
    """The integer next to x / log 2, as a float32; |x| < 1000."""
    far = float32(12582912)  # where neighbours are 1 apart: a floor would be an integer of 64 bits
    return (x * float32(1.44269504088896341) + far) - far


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def exp(x: Any) -> Any:
    """eˣ, be it no normal number."""
    low, high = float32(-103.97), float32(88.72283)
    clamped = low if x < low else x
    clamped = high if clamped > high else clamped
    n = _exponent(clamped)
    p = _mantissa(clamped, n)
    # In two steps: 2^128 is no float32, but e^88.7 is.
    half = int32(n) >> int32(1)
    rest = int32(n) - half
    scaled = p * _bits_to_float(int32((half + int32(127)) << int32(23)))
    scaled = scaled * _bits_to_float(int32((rest + int32(127)) << int32(23)))
    scaled = float32(0) if x < float32(-103.97) else scaled
    scaled = float32(math.inf) if x > high else scaled
    return x if x != x else scaled


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ); 0 where that is no normal number."""
    low, high = float32(-87.33), float32(88.72283)
    clamped = low if -x < low else -x
    clamped = high if clamped > high else clamped
    n = _exponent(clamped)
    # 2^128 has the bits of infinity.
    power = _mantissa(clamped, n) * _bits_to_float(int32((int32(n) + int32(127)) << int32(23)))
    return x if x != x else float32(1) / (float32(1) + power)


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def sqrt(x: Any) -> Any:
    """Square root; NaN below zero."""
    return math.sqrt(x)


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def maximum(a: Any, b: Any) -> Any:
    """The larger; NaN if one is."""
    return a if a >= b or a != a else b


@compiled(inline="always", error_model="numpy", fastmath={"contract"})
def minimum(a: Any, b: Any) -> Any:
    """The smaller; NaN if one is."""
    return a if a <= b or a != a else b
