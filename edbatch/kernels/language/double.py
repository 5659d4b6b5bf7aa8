"""Functions of float64 as arithmetic that vectorises, as `single` has those of float32; no tables.

A logarithm is the odd series of s = (m - 1) / (m + 1) for m between sqrt(1/2) and sqrt(2). Integers become numbers, and
numbers are rounded to integers, by adding them to 2^52 or 1.5 * 2^52: few processors convert vectors of 64 bits. A name
that ends in `_lost` is what the rounding of another one lost; where `fma` does not compute it, it need not be exact.
"""

from __future__ import annotations


def _in_pairs(x: str, square: str, *coefficients: float) -> str:
    """A polynomial by Horner in the square, highest power first: fewer steps that wait for one another."""
    rest = [repr(coefficient) for coefficient in coefficients]
    text = rest.pop(0) if len(rest) % 2 else ""
    while rest:
        pair = f"({rest.pop(0)} * {x} + {rest.pop(0)})"
        text = f"({text} * {square} + {pair})" if text else pair
    return text


_LOG2_HIGH, _LOG2_LOW = 0.6931471805592082, 7.371002565167799e-13  # the first has 40 bits: 11 more are exact

# (e^r - 1 - r) / r² for |r| up to log(2) / 2, to 2^-57 and 2^-63 of e^r.
_QUICK = _in_pairs(
    "r", "r2", 2.5114486943967433e-08, 2.762632715109734e-07, 2.755722790693389e-06, 2.4801504444448532e-05,
    0.000198412699030883, 0.0013888888932379927, 0.008333333333314562, 0.04166666666657362, 0.16666666666666685,
    0.5000000000000006,
)  # fmt: skip
_EXACT = _in_pairs(
    "r", "r2", 2.092443543160472e-09, 2.5109045101133723e-08, 2.755724278172808e-07, 2.7557244181289315e-06,
    2.4801587360536126e-05, 0.00019841269886159178, 0.0013888888888866843, 0.008333333333321615, 0.0416666666666667,
    0.16666666666666677, 0.5,
)  # fmt: skip

# The integer n next to c / log 2, and what is left of c.
_WHOLE = """
shifted = c * 1.4426950408889634 + 6755399441055744.0
n = shifted - 6755399441055744.0
whole = bits(shifted) - 0x4338000000000000
"""
_REDUCED = f"{_WHOLE}r = c - n * {_LOG2_HIGH!r}\n"

# e^c, in two steps where it is no normal number, or more than the largest.
_EXP_OF_C = f"""
{_REDUCED}
r = r - n * {_LOG2_LOW!r}
r2 = r * r
p = {_QUICK} * r2 + r + 1
half = whole >> 1
e = p * from_bits((half + 1023) << 52) * from_bits((whole - half + 1023) << 52)
"""

EXP = f"""
c = -746.0 if x < -746.0 else x
c = 710.0 if c > 710.0 else c
{_EXP_OF_C}
e
"""

# Of t = e^-|x|, where nothing overflows; divided in two steps, with what the rounding of 1 + t lost.
SIGMOID = f"""
size = abs(x)
c = -746.0 if size > 746.0 else -size
{_EXP_OF_C}
top = 1 if x >= 0 else e
d = 1 + e
y = 1 / d
first = top * y
first + ((top - first * d) - first * ((1 - d) + e)) * y
"""

# e^r - 1 = r + q, where what the rounding of r lost is a part of q.
_POWER_LESS_ONE = f"""
{_REDUCED}
exact = r
r = exact - n * {_LOG2_LOW!r}
r2 = r * r
q = {_EXACT} * r2 + ((exact - r) - n * {_LOG2_LOW!r})
"""

# 2^n (1 + r + q) - 1, of which the halves are computed.
EXPM1 = f"""
c = -40.0 if x < -40.0 else x
c = 710.0 if c > 710.0 else c
{_POWER_LESS_ONE}
half = from_bits((whole + 1022) << 52)
value = (half * r + (half - 0.5)) + half * q
x if abs(x) < 1e-17 else value + value
"""

# t / (t + 2) for t = e^2|x| - 1, divided in two steps, with what the rounding of t and t + 2 lost.
TANH = f"""
size = abs(x)
c = 44.0 if size > 22.0 else size + size
{_POWER_LESS_ONE}
power = from_bits((whole + 1023) << 52)
most = power * r + (power - 1)
t = most + power * q
t_lost = (most - t) + power * q
d = t + 2
d_lost = (t - (d - 2)) + t_lost
y = 1 / d
first = t * y
value = first + ((t - first * d) + (t_lost - first * d_lost)) * y
from_bits(bits(value) ^ (bits(x) & -9223372036854775808))
"""

# z p = log(m) / s - 2 to 2^-59 of it, and (z p - 2 z / 3) / z² to 2^-66, for z = s².
_SERIES = _in_pairs(
    "z", "z2", 0.14796107793018992, 0.15314035555598027, 0.18183564879563516, 0.22222198563197176,
    0.2857142874247805, 0.39999999999414304, 0.6666666666666734,
)  # fmt: skip
_LONG_SERIES = _in_pairs(
    "z", "z2", 0.1319636891425648, 0.13256813250849708, 0.15386757533047515, 0.18181784362503972,
    0.22222222519979104, 0.28571428570099233, 0.40000000000002256,
)  # fmt: skip

# n and m = 1 + f of a number m 2^n with the bits i.
_SPLIT = """
j = i + 0x95F619980C433
e = unsigned_shift(j, 52)
n = from_bits(e + 0x4330000000000000) - 4503599627371519.0
m = from_bits((j & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD)
f = m - 1
"""

# log(1 + f) = f - rest.
_LOG_OF_F = f"""
s = f / (m + 1)
z = s * s
z2 = z * z
rest = s * (f - z * {_SERIES})
"""

LOG = f"""
tiny = x < 2.2250738585072014e-308
i = bits(x * 18014398509481984.0 if tiny else x)
{_SPLIT}
n = n - (54.0 if tiny else 0.0)
{_LOG_OF_F}
value = n * {_LOG2_HIGH!r} + (f - (rest - n * {_LOG2_LOW!r}))
(value if x < inf else x) if x > 0 else (-inf if x == 0 else nan)
"""

# What 1 + x loses is made good by its quotient by 1 + x.
LOG1P = f"""
u = 1 + x
i = bits(u)
{_SPLIT}
more = x if x > 1 else 1
less = x if x < 1 else 1
lost = less - (u - more)
{_LOG_OF_F}
again = lost * from_bits((2047 - e) << 52) * ((z - s) + 0.5)
value = n * {_LOG2_HIGH!r} + (f - (rest - (n * {_LOG2_LOW!r} + again)))
(value if x < inf and x != 0 else x) if x > -1 else (-inf if x == -1 else nan)
"""

_TWO_THIRDS = 2 / 3

# e^(b log a) for a normal a > 0 where the power is far from the limits of float64; all else is the C library's. The
# logarithm, l + l_lost, is in two parts, to 66 bits: so are s, its square and the first two terms of the series.
POWER = f"""
i = bits(a)
{_SPLIT}
d = m + 1
y = 1 / d
s = f * y
s_lost = (fma(-s, d, f) - s * (m - (d - 1))) * y
z = s * s
z_lost = fma(s, s, -z) + 2 * s * s_lost
first = z * {_TWO_THIRDS!r}
z2 = z * z
others = z2 * {_LONG_SERIES}
t = first + others
t_lost = (first - t) + others
t_lost = t_lost + (fma(z, {_TWO_THIRDS!r}, -first) + (z_lost * {_TWO_THIRDS!r} + z * 3.700743415417188e-17))
st = s * t
st_lost = fma(s, t, -st) + (s * t_lost + s_lost * t)
s2 = s + s
whole_m = s2 + st
m_lost = ((s2 - whole_m) + st) + (2 * s_lost + st_lost)
front = n * {_LOG2_HIGH!r}
l = front + whole_m
l_lost = ((front - l) + whole_m) + (n * {_LOG2_LOW!r} + m_lost)
c = l * b
{_WHOLE}
r = fma(l, b, n * {-_LOG2_HIGH!r}) + (l_lost * b - n * {_LOG2_LOW!r})
r2 = r * r
p = {_QUICK} * r2 + r + 1
usual(i > 0xFFFFFFFFFFFFF and i < 0x7FF0000000000000 and abs(n) < 1000.0, from_bits(bits(p) + (whole << 52)))
"""
