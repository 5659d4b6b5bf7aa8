"""Functions that are computed in another way for float32, or only for it; see `elementary`.

Sines go to float64 in between, where float32 is not enough.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from edbatch.kernels.language.elementary import SINGLE, polynomial

# A rational approximation of degree 13 over 6 (Eigen's), constant beyond 7.9, where it is still less than 1; but what
# rounds to 1 has to be 1, for 1 - tanh(x)² to be 0.
_TANH_TOP = polynomial(
    "t", -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
TANH = f"""
c = -7.90531110763549805 if x < -7.90531110763549805 else x
c = 7.90531110763549805 if c > 7.90531110763549805 else c
t = c * c
p = {_TANH_TOP}
q = {polynomial("t", 1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)}
r = c * quotient(p, q)
r = 1 if x > 8.3 else r
-1 if x < -8.3 else r
"""

# With t = e^-|x| nothing overflows.
SIGMOID = f"""
size = abs(x)
c = {-SINGLE.limit} if size > {SINGLE.limit} else -size
{SINGLE.exp_of_c}
quotient(1 if x >= 0 else power, 1 + power)
"""

# x is m 2^k for an integer m of 24 bits, and so many quarter turns: m times 2^k 2/pi modulo 4. That comes from a table,
# in two parts, of which m times the first (29 bits) is exact in float64.
_TURNED = f"""
i = bits(x)
at = (i >> 23) & 255
m = number((i & 0x7FFFFF) + (0 if at == 0 else 0x800000))
high = double(m) * turns_high(at)
low = double(m) * turns_low(at)
shifted = (high + low) + 6755399441055744.0
n = shifted - 6755399441055744.0
r = single(((high - n) + low) * 1.5707963267948966)
quarter = low_bits(shifted)
t = r * r
sine = {polynomial("t", -0.00019515249, 0.00833216, -0.16666655)} * t * r + r
cosine = {polynomial("t", 2.4433119e-05, -0.0013887316, 0.041666646)} * t * t + (1 - 0.5 * t)
"""
SIN = f"""
{_TURNED}
value = sine if (quarter & 1) == 0 else cosine
from_bits(bits(value) ^ ((quarter & 2) << 30) ^ (bits(x) & -2147483648))
"""
COS = f"""
{_TURNED}
value = cosine if (quarter & 1) == 0 else sine
from_bits(bits(value) ^ (((quarter + 1) & 2) << 30))
"""

# erfc(a) = e^(-a a) w(t) / (1 + 2 a) for a >= 0, t = (a - 3) / (a + 3). The square is exact in two parts, as a small
# error in an exponent is a large one in its power.
_ERFC_WEIGHT = polynomial(
    "t", -0.00026812908, -0.0007775861, 0.0020018115, 0.0025673786, -0.023797529, 0.06829577, -0.11927097, 0.12964642,
    -0.047562398, -0.13562115,
)  # fmt: skip
_ERFC_OF_A = f"""
t = (a - 3) / (a + 3)
w = {_ERFC_WEIGHT} * t + 1.253008
front = from_bits(bits(a) & -4096)
c = -(front * front)
least = (front - a) * (front + a)
{SINGLE.exp_of_c}
tail = power * (least * {polynomial("least", 0.041666668, 0.16666667, 0.5, 1.0)} + 1) * (w / (1 + 2 * a))
"""
_INSIDE = polynomial("s", 7.853858e-05, -0.00080101925, 0.0051883277, -0.026853811, 0.112835854, -0.37612626)
ERFC = f"""
size = abs(x)
a = 10.2 if size > 10.2 else size
{_ERFC_OF_A}
s = x * x
outside = tail if x >= 0 else 2 - tail
1 - x * ({_INSIDE} * s + 1.1283791) if size < 0.5 else outside
"""
ERF = f"""
size = abs(x)
a = 4.0 if size > 4.0 else size
{_ERFC_OF_A}
s = x * x
outside = 1 - tail
x * ({_INSIDE} * s + 1.1283791) if size < 1 else (outside if x >= 0 else -outside)
"""

# SplitMix64; the seed itself goes through one round, so that neighbouring seeds share no stream.
_MIXED = """
z = (z ^ unsigned_shift(z, 30)) * 0xBF58476D1CE4E5B9
z = (z ^ unsigned_shift(z, 27)) * 0x94D049BB133111EB
z = z ^ unsigned_shift(z, 31)
"""
UNIFORM = f"""
z = seed * 0x9E3779B97F4A7C15
{_MIXED}
z = z + (position + 1) * 0x9E3779B97F4A7C15
{_MIXED}
number(unsigned_shift(z, 11)) * 1.1102230246251565e-16
"""


# 2 / pi, to 400 bits.
_QUARTERS = Fraction(
    0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1d, 1 << 400
)  # fmt: skip


@cache
def turns(part: str) -> tuple[float, ...]:
    """By the bits of a float32's exponent, how many quarter turns, modulo 4, one in the last place of its 24 bits is.

    Args:
        part: "high", the first 29 bits; "low", the others.
    """
    found = []
    for at in range(255):
        turn = _QUARTERS * Fraction(2) ** (max(at, 1) - 150) % 4
        mantissa, exponent = math.frexp(turn)
        high = math.ldexp(math.floor(mantissa * 2**29), exponent - 29)
        found.append(high if part == "high" else float(turn - Fraction(high)))
    return (*found, math.nan)
