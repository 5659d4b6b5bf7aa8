"""Functions that are computed in another way for float64; see `elementary`."""

from __future__ import annotations

from edbatch.kernels.language.elementary import DOUBLE, polynomial

# Of t = e^-|x|, where nothing overflows; divided in two steps, with what the rounding of 1 + t lost.
SIGMOID = f"""
size = abs(x)
c = {-DOUBLE.limit} if size > {DOUBLE.limit} else -size
{DOUBLE.exp_of_c}
top = 1 if x >= 0 else power
d = 1 + power
y = 1 / d
first = top * y
first + ((top - first * d) - first * ((1 - d) + power)) * y
"""

# t / (t + 2) for t = e^2|x| - 1, divided in two steps, with what the rounding of t and t + 2 lost.
TANH = f"""
size = abs(x)
c = 44.0 if size > 22.0 else size + size
{DOUBLE.power_less_one}
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

# (z p - 2 z / 3) / z² to 2^-66, where z p is log(m) / s - 2 for s = (m - 1) / (m + 1), z = s².
_SERIES = polynomial(
    "z", 0.1319636891425648, 0.13256813250849708, 0.15386757533047515, 0.18181784362503972,
    0.22222222519979104, 0.28571428570099233, 0.40000000000002256,
)  # fmt: skip
_TWO_THIRDS = 2 / 3

# e^(b log |a|), and NumPy's power of any two numbers, given that `power` of a `size` = |a| that is neither 0 nor
# infinite. The logarithm, l + l_lost, is in two parts, to 66 bits: so are s, its square and the first two terms of
# the series.
POWER = f"""
size = abs(a)
{DOUBLE.split_any}
d = m + 1
y = 1 / d
s = f * y
s_lost = (fma(-s, d, f) - s * (m - (d - 1))) * y
z = s * s
z_lost = fma(s, s, -z) + 2 * s * s_lost
first = z * {_TWO_THIRDS!r}
others = z * z * {_SERIES}
t = first + others
t_lost = (first - t) + others
t_lost = t_lost + (fma(z, {_TWO_THIRDS!r}, -first) + (z_lost * {_TWO_THIRDS!r} + z * 3.700743415417188e-17))
st = s * t
st_lost = fma(s, t, -st) + (s * t_lost + s_lost * t)
s2 = s + s
whole_m = s2 + st
m_lost = ((s2 - whole_m) + st) + (2 * s_lost + st_lost)
front = n * {DOUBLE.log2_high!r}
l = front + whole_m
l_lost = ((front - l) + whole_m) + (n * {DOUBLE.log2_low!r} + m_lost)
t = l * b
c = -800.0 if t < -800.0 else t
c = 800.0 if c > 800.0 else c
{DOUBLE.whole}
r = fma(l, b, -n * {DOUBLE.log2_high!r}) + (l_lost * b - n * {DOUBLE.log2_low!r}) if c == t else 0.0
{DOUBLE.scaled(f"{polynomial('r', *DOUBLE.exp)} * (r * r) + r + 1")}
value = (inf if b < 0 else 0.0) if size == 0 else power
value = (0.0 if b < 0 else inf) if size == inf else value
value = 1.0 if size == 1 else value
is_whole = floor(b) == b
is_odd = is_whole and floor(b * 0.5) * 2 != b
value = -value if is_odd and bits(a) < 0 else value
value = nan if a != a or b != b or (a < 0 and size < inf and not is_whole) else value
1.0 if b == 0 or a == 1 else value
"""
