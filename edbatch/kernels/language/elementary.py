"""Functions of float32 and of float64 as arithmetic that vectorises: no calls, no branches, no tables.

A text is the same for both; where they differ, a `Format` says how. The polynomials are fitted for the least error
relative to the result. `bits` and `from_bits` are a number's bits as an integer of as many; adding 1.5 * 2^23 (in
float64 2^52) rounds to an integer and leaves it in the lowest bits, where NaN gives some integer without a trap; few
processors convert vectors of 64 bits. `fma` is a product and a sum that are rounded once; a name that ends in `_lost`
is what the rounding of another one lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


def polynomial(x: str, *coefficients: float) -> str:
    """The text of a polynomial, highest power first, by Horner in x²: fewer steps that wait for one another."""
    rest = [repr(coefficient) for coefficient in coefficients]
    text = rest.pop(0) if len(rest) % 2 else ""
    while rest:
        pair = f"({rest.pop(0)} * {x} + {rest.pop(0)})"
        text = f"({text} * ({x} * {x}) + {pair})" if text else pair
    return text


@dataclass(frozen=True)
class Format:
    """What a processor has for numbers.

    Args:
        size: bytes of one.
        mantissa: bits behind the point.
        bias: of exponents.
        log2_high, log2_low: log 2 in two parts; the product of an exponent and the first is exact.
        exp: (e^r - 1 - r) / r² for |r| up to log(2) / 2, a polynomial.
        log: (log(1 + f) - f + f² / 2) / f³ for 1 + f between sqrt(1/2) and sqrt(2).
    """

    size: int
    mantissa: int
    bias: int
    log2_high: float
    log2_low: float
    exp: tuple[float, ...]
    log: tuple[float, ...]

    @property
    def limit(self) -> int:
        """e^c is 0, or infinite, for what is farther from 0."""
        return math.ceil((self.bias + self.mantissa + 2) * math.log(2))

    def bits(self, number: float) -> int:
        """The bits of a number."""
        return int(np.array(number, f"f{self.size}").view(f"i{self.size}"))

    @property
    def whole(self) -> str:
        """The integer n next to c / log 2; `whole` is one of integers."""
        rounding = 1.5 * 2**self.mantissa
        return f"""
shifted = c * 1.4426950408889634 + {rounding}
n = shifted - {rounding}
whole = bits(shifted) - {self.bits(rounding)}
"""

    @property
    def power_less_one(self) -> str:
        """e^c = 2^n (1 + r + q)."""
        return f"""
{self.whole}
r = c - n * {self.log2_high}
rest = r - n * {self.log2_low}
q = {polynomial("rest", *self.exp)} * (rest * rest) - n * {self.log2_low}
"""

    @property
    def exp_of_c(self) -> str:
        """The power e^c."""
        return f"{self.power_less_one}\n{self.scaled('r + q + 1')}"

    def scaled(self, power: str) -> str:
        """A number times 2^whole, in two steps where it is no normal number, or more than the largest."""
        half, other = (f"from_bits(({n} + {self.bias}) << {self.mantissa})" for n in ("half", "whole - half"))
        return f"half = whole >> 1\npower = ({power}) * {half} * {other}"

    @property
    def split(self) -> str:
        """The integer n and m = 1 + f of a number m 2^n > 0 with the bits i."""
        begin, one = self.bits(math.sqrt(0.5)), self.bits(1.0)
        return f"""
j = i + {one - begin}
exponent = unsigned_shift(j, {self.mantissa})
n = from_bits(exponent + {self.bits(2.0**self.mantissa)}) - {2.0**self.mantissa + self.bias}
m = from_bits((j & {2**self.mantissa - 1}) + {begin})
f = m - 1
"""

    @property
    def split_any(self) -> str:
        """The same of any `size` > 0, and whether that is less than all normal numbers."""
        return f"""
tiny = size < {2.0 ** (1 - self.bias)}
i = bits(size * {2.0**self.mantissa} if tiny else size)
{self.split}
n = n - ({self.mantissa}.0 if tiny else 0.0)
"""

    def log_of_f(self, more: str) -> str:
        """The logarithm of m 2^n, and a small number added to it."""
        return f"""
z = f * f
y = {polynomial("f", *self.log)} * f * z + (n * {self.log2_low} + {more}) - 0.5 * z
value = f + y + n * {self.log2_high}
"""


SINGLE = Format(
    4, 23, 127, 0.693359375, -2.12194440e-4,
    exp=(0.00019790346, 0.001394466, 0.008333497, 0.041666295, 0.16666666, 0.5),
    log=(-0.0763443, 0.1276155, -0.13160194, 0.14201762, -0.16623357, 0.20001227, -0.25000823, 0.3333333),
)  # fmt: skip
DOUBLE = Format(
    8, 52, 1023, 0.6931471805592082, 7.371002565167799e-13,
    exp=(
        2.092443543160472e-09, 2.5109045101133723e-08, 2.755724278172808e-07, 2.7557244181289315e-06,
        2.4801587360536126e-05, 0.00019841269886159178, 0.0013888888888866843, 0.008333333333321615, 0.0416666666666667,
        0.16666666666666677, 0.5,
    ),
    log=(
        -0.025061228095282464, 0.0566642324205218, -0.06129561980727906, 0.0537187789066478, -0.05368280388050548,
        0.05837018351464999, -0.06265031869518063, 0.06671985555271291, -0.0714223204915847, 0.0769198812013375,
        -0.08333345056413204, 0.09090919875998202, -0.0999999999631727, 0.11111110909841072, -0.12499999997109267,
        0.1428571428759174, -0.16666666666697305, 0.19999999999993223, -0.2499999999999993, 0.33333333333333337,
    ),
)  # fmt: skip


def exp(of: Format) -> str:
    """e^x."""
    return f"""
c = {-of.limit} if x < {-of.limit} else x
c = {of.limit} if c > {of.limit} else c
{of.exp_of_c}
power
"""


def expm1(of: Format) -> str:
    """2^n (1 + r + q) - 1, of which the halves are computed; infinite beyond `most`."""
    most = math.ceil((of.bias + 1) * math.log(2))
    return f"""
c = -40 if x < -40 else x
c = {most} if c > {most} else c
{of.power_less_one}
half = from_bits((whole + {of.bias - 1}) << {of.mantissa})
value = (half * r + (half - 0.5)) + half * q
x if abs(x) < {2.0 ** (-1 - of.mantissa)} else value + value
"""


def log(of: Format) -> str:
    """log x."""
    return f"""
size = x
{of.split_any}
{of.log_of_f("0.0")}
(value if x < inf else x) if x > 0 else (-inf if x == 0 else nan)
"""


def log1p(of: Format) -> str:
    """log(1 + x); what the rounding of 1 + x lost is made good by its quotient by 1 + x, near 2^-n (1 - f + f²)."""
    return f"""
u = 1 + x
i = bits(u)
{of.split}
more = x if x > 1 else 1
less = x if x < 1 else 1
lost = less - (u - more)
{of.log_of_f(f"lost * from_bits(({2 * of.bias + 1} - exponent) << {of.mantissa}) * (0.5 * (z - f) + 0.5)")}
(value if x < inf and x != 0 else x) if x > -1 else (-inf if x == -1 else nan)
"""
