"""Functions of float32 as arithmetic that vectorises: no calls, no branches, no tables but for sines of huge angles.

The polynomials are fitted to float64 values, for the least error relative to the result. Some go to float64 in between,
where float32 is not enough. `bits` and `from_bits` are a number's bits as an integer of as many; adding 1.5 * 2^23 (in
float64 2^52) rounds to an integer and leaves it in the lowest bits, where NaN gives some integer without a trap.

A text that ends in `usual(test, value)` is quick, and right where the test is true. Another one, _ANYWHERE, is right
for all arguments; it is only computed for vectors with a number that fails the test (see `llvm_unusual`). `fma` is a
product and a sum that are rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from edbatch.kernels.language.expressions import polynomial

# e^c = p * 2^n for the integer n next to c / log 2; where that is no normal number, or more than the largest, in two
# steps.
_EXP_OF_C = f"""
shifted = c * 1.44269504088896341 + 12582912.0
n = shifted - 12582912.0
whole = bits(shifted) - 0x4B400000
r = c - n * 0.693359375
r = r - n * -2.12194440e-4
p = {polynomial("r", 0.00019790346, 0.001394466, 0.008333497, 0.041666295, 0.16666666, 0.5)} * r * r + r + 1
half = whole >> 1
e = p * from_bits((half + 127) << 23) * from_bits((whole - half + 127) << 23)
"""

EXP = f"""
c = -105.0 if x < -105.0 else x
c = 89.0 if c > 89.0 else c
{_EXP_OF_C}
e
"""

# With t = e^-|x| nothing overflows.
SIGMOID = f"""
size = abs(x)
c = -105.0 if size > 105.0 else -size
{_EXP_OF_C}
quotient(1 if x >= 0 else e, 1 + e)
"""

# e^x - 1 = 2^n (e^r - 1) + (2^n - 1), of which the halves are computed.
EXPM1 = f"""
c = -20.0 if x < -20.0 else x
c = 89.0 if c > 89.0 else c
shifted = c * 1.44269504088896341 + 12582912.0
n = shifted - 12582912.0
r = c - n * 0.693359375
r = r - n * -2.12194440e-4
p = {polynomial("r", 0.00019845877, 0.0013940628, 0.00833339, 0.041666362, 0.16666666, 0.5)} * r * r + r
half = from_bits((bits(shifted) - 0x4B400000 + 126) << 23)
value = half * p + (half - 0.5)
x if abs(x) < 5e-8 else value + value
"""

# log(m 2^k) for m from sqrt(1/2) to sqrt(2), where f = m - 1.
_LOG_OF_F = (
    "z = f * f\n"
    "y = "
    + polynomial(
        "f", -0.0763443, 0.1276155, -0.13160194, 0.14201762, -0.16623357, 0.20001227, -0.25000823, 0.3333333,
    )
    + " * f * z\n"
)  # fmt: skip

LOG = f"""
tiny = x < 1.17549435e-38
i = bits(x * 8388608.0 if tiny else x)
k = (i - 0x3F3504F3) >> 23
f = from_bits(i - (k << 23)) - 1
n = number(k) - (23.0 if tiny else 0.0)
{_LOG_OF_F}
y = y + -2.12194440e-4 * n
y = y + -0.5 * z
value = f + y + 0.693359375 * n
(value if x < inf else x) if x > 0 else (-inf if x == 0 else nan)
"""

# What 1 + x loses, c, is made good by c / (1 + x).
LOG1P = f"""
u = 1 + x
i = bits(u)
near = u > 0.70710677 and u < 1.4142135
k = (i - 0x3F3504F3) >> 23
lost = (1 - (u - x)) if x >= 1 else (x - (u - 1))
f = x if near else from_bits(i - (k << 23)) - 1
n = 0.0 if near else number(k)
{_LOG_OF_F}
y = y + (-2.12194440e-4 * n + (0.0 if near else quotient(lost, u)))
y = y + -0.5 * z
value = f + y + 0.693359375 * n
value = x if abs(x) < 3e-8 else value
(value if x < inf else x) if x > -1 else (-inf if x == -1 else nan)
"""

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

# Of an angle r that is less than an eighth of a turn, and a number of quarter turns.
_SINE_AND_COSINE = f"""
t = r * r
sine = {polynomial("t", -0.00019515249, 0.00833216, -0.16666655)} * t * r + r
cosine = {polynomial("t", 2.4433119e-05, -0.0013887316, 0.041666646)} * t * t + (1 - 0.5 * t)
"""
_SIN = """
value = sine if (quarter & 1) == 0 else cosine
from_bits(bits(value) ^ ((quarter & 2) << 30) ^ (bits(x) & -2147483648))
"""
_COS = """
value = cosine if (quarter & 1) == 0 else sine
from_bits(bits(value) ^ (((quarter + 1) & 2) << 30))
"""

# A quarter turn in three parts, less than it together, so that a zero stays one; what is left of x is exact after the
# first, as the product is not rounded.
_NEAR = f"""
size = abs(x)
shifted = size * 0.636619772 + 12582912.0
quarter = bits(shifted)
n = shifted - 12582912.0
r = fma(n, -1.570796251296997, size)
r = fma(n, -7.549789415861596e-08, r)
r = fma(n, -5.390302529957765e-15, r)
{_SINE_AND_COSINE}
"""

# x is m 2^k for an integer m of 24 bits, and so many quarter turns: m times 2^k 2/pi modulo 4. That comes from a table,
# in two parts, of which m times the first (29 bits) is exact in float64.
_ANYWHERE = f"""
i = bits(x)
at = (i >> 23) & 255
m = number((i & 0x7FFFFF) + (0 if at == 0 else 0x800000))
high = double(m) * turns_high(at)
low = double(m) * turns_low(at)
shifted = (high + low) + 6755399441055744.0
n = shifted - 6755399441055744.0
r = single(((high - n) + low) * 1.5707963267948966)
quarter = low_bits(shifted)
{_SINE_AND_COSINE}
"""


def _where_near(text: str) -> str:
    *lines, value = text.strip().splitlines()
    return "\n".join([*lines, f"usual(size < 65536.0, {value})"])


SIN, SIN_ANYWHERE = _where_near(_NEAR + _SIN), _ANYWHERE + _SIN
COS, COS_ANYWHERE = _where_near(_NEAR + _COS), _ANYWHERE + _COS

# erfc(a) = e^(-a a) w(t) / (1 + 2 a) for a >= 0, t = (a - 3) / (a + 3). The square is exact in two parts, as a small
# error in an exponent is a large one in its power.
_ERFC_WEIGHT = polynomial(
    "t", -0.00026812908, -0.0007775861, 0.0020018115, 0.0025673786, -0.023797529, 0.06829577, -0.11927097, 0.12964642,
    -0.047562398, -0.13562115, 1.253008,
)  # fmt: skip
_ERFC_OF_A = f"""
t = (a - 3) / (a + 3)
w = {_ERFC_WEIGHT}
front = from_bits(bits(a) & -4096)
c = -(front * front)
rest = (front - a) * (front + a)
{_EXP_OF_C}
tail = e * (rest * {polynomial("rest", 0.041666668, 0.16666667, 0.5, 1.0)} + 1) * (w / (1 + 2 * a))
"""
_INSIDE = polynomial("s", 7.853858e-05, -0.00080101925, 0.0051883277, -0.026853811, 0.112835854, -0.37612626, 1.1283791)
ERFC = f"""
size = abs(x)
a = 10.2 if size > 10.2 else size
{_ERFC_OF_A}
s = x * x
outside = tail if x >= 0 else 2 - tail
1 - x * {_INSIDE} if size < 0.5 else outside
"""
ERF = f"""
size = abs(x)
a = 4.0 if size > 4.0 else size
{_ERFC_OF_A}
s = x * x
outside = 1 - tail
x * {_INSIDE} if size < 1 else (outside if x >= 0 else -outside)
"""

# 2^(b log2 a) for a > 0 where the power is not near the limits of float32; what is not finite, or a subnormal base, is
# left to the other text. The first terms of log2(1 + f) / f are in two parts, 33 bits together: what the rounding of a
# sum loses is what `fma` gives with the sum's difference from its larger operand, which is exact.
POWER = """
i = bits(a)
k = (i - 0x3F3504F3) >> 23
whole = number(k)
f = from_bits(i - (k << 23)) - 1
f2 = f * f
s = ((-0.0864252895 * f + 0.154903561) * f2 + (-0.156969517 * f + 0.158992261)) * (f2 * f2) + (
    (-0.179047659 * f + 0.206096858) * f2 + (-0.240504146 * f + 0.288540632)
)
high = fma(f, s, -0.360672802)
low = fma(f, s, -0.360672802 - high)
h = fma(f, high, 0.480898321)
low = fma(f, low, fma(f, high, 0.480898321 - h))
high = fma(f, h, -0.721347511)
low = fma(f, low, fma(f, h, -0.721347511 - high) - 1.43817074e-08)
h = fma(f, high, 1.44269502)
low = fma(f, low, fma(f, high, 1.44269502 - h) + 1.93111802e-08)
high = fma(f, h, whole)
low = fma(f, low, fma(f, h, whole - high))
shifted = high * b + 12582912.0
n = shifted - 12582912.0
r = fma(low, b, fma(high, b, -n))
q = (0.00015453163 * r + 0.0013390863) * (r * r) + (0.009618083 * r + 0.05550357)
q = ((q * r + 0.24022651) * r + 0.69314718) * r + 1
value = from_bits(bits(q) + (bits(shifted) << 23))
usual(i > 0x7FFFFF and i < 0x7F800000 and abs(n) < 64.0, value)
"""

# In float64; log2 from the odd series of (m - 1) / (m + 1).
_LOG2_SERIES = polynomial(
    "z", 0.28291008131575957, 0.31990497269194845, 0.41220927092947957, 0.5770779421702548, 0.961796694114055,
    2.8853900817778504,
)  # fmt: skip
_EXP2_SERIES = polynomial(
    "r", 1.5201896747758856e-05, 0.00015469317305585588, 0.0013333922874092562, 0.009618027172755427,
    0.05550410352809327, 0.24022651198754907, 0.6931471807287244, 0.9999999999616205,
)  # fmt: skip
POWER_ANYWHERE = f"""
size = abs(a)
i = bits(double(size))
k = (i - 0x3FE6A09E667F3BCD) >> 52
m = from_bits(i - (k << 52))
s = (m - 1) / (m + 1)
z = s * s
p = {_LOG2_SERIES}
t = (number(k) + s * p) * double(b)
t = 200.0 if t > 200.0 else t
t = -200.0 if t < -200.0 else t
shifted = t + 6755399441055744.0
r = t - (shifted - 6755399441055744.0)
q = {_EXP2_SERIES}
value = single(from_bits(bits(q) + (bits(shifted) << 52)))
value = (inf if b < 0 else 0.0) if size == 0 else value
value = (0.0 if b < 0 else inf) if size == inf else value
value = 1.0 if size == 1 else value
whole = floor(b) == b
odd = whole and floor(b * 0.5) * 2 != b
value = -value if odd and bits(a) < 0 else value
value = nan if a != a or b != b or (a < 0 and size < inf and not whole) else value
1.0 if b == 0 or a == 1 else value
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
        exponent = _exponent(turn)
        unit = Fraction(2) ** (exponent - 28)
        high = turn // unit * unit
        found.append(float(high if part == "high" else turn - high))
    return (*found, float("nan"))


def _exponent(x: Fraction) -> int:
    """Of the highest power of two that is not above it."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= x else exponent - 1
