"""Fused element-wise kernels as CUDA C++: the recipes that Numba compiles for the CPU, written for NVRTC."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.kernels.cuda.source import common
from edbatch.kernels.recipe import Language, Recipe, source_in

KERNEL = """
extern "C" __global__ void {name}(long long n, long long d, {places}) {
    const long long i = own_row(), j = own_column();
    if (i >= n || j >= d) return;
{rows}
{body}
}
"""

FUNCTIONS = {  # with their numbers of arguments; the accurate ones, not the fast intrinsics
    "abs": ("fabsf", 1),
    "cos": ("cosf", 1),
    "erf": ("erff", 1),
    "erfc": ("erfcf", 1),
    "exp": ("expf", 1),
    "expm1": ("expm1f", 1),
    "log": ("logf", 1),
    "log1p": ("log1pf", 1),
    "maximum": ("maximum", 2),
    "minimum": ("minimum", 2),
    "power": ("powf", 2),
    "sigmoid": ("sigmoid", 1),
    "sin": ("sinf", 1),
    "sqrt": ("sqrtf", 1),
    "tanh": ("tanhf", 1),
}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
SIGNS = {ast.UAdd: "+", ast.USub: "-"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def module_of(recipes: Mapping[str, Recipe]) -> str:
    """CUDA C++ of kernels by name, without includes: what `source_of` says of each, and what they share."""
    return common() + "".join(source_of(recipe, name) for name, recipe in recipes.items())


def source_of(recipe: Recipe, name: str = "kernel") -> str:
    """The kernel as CUDA C++: `extern "C" __global__ void NAME(n, d, p0, d0, i0, p1, d1, i1, ...)`.

    Row i of a place begins at entry i0[i] * d0 of the array p0, or at i * d0 where the list i0 is null. The grid has a
    thread for every entry (see `geometry.spread`). Whole numbers are `long long`, arrays `float*`, lists `const int*`.

    Raises:
        EdBatchError: a scalar expression has no translation (see `cuda_expression`).

    Example:
        >>> from edbatch.kernels.recipe import Compute, Load, Store
        >>> steps = (Load(0, 1), Compute("tanh({0})", (0,)), Compute("{0} * {1}", (1, "float32(2.0)")))
        >>> print(source_of(Recipe(2, steps, (Store(2, 1),))).split("return;")[1])
        <BLANKLINE>
            const long long r0 = (i0 ? i0[i] : i) * d0;
            const long long r1 = (i1 ? i1[i] : i) * d1;
            const float v0 = p0[r0 + d + j];
            const float v1 = tanhf(v0);
            const float v2 = (v1 * 2.0f);
            p1[r1 + j] = v2;
        }
        <BLANKLINE>
    """
    return source_in(CUDA, recipe).replace("{name}", name)


def cuda_expression(expression: str, functions: Mapping[str, tuple[str, int]] = FUNCTIONS) -> str:
    """A scalar expression of the op table, over values v0, v1, ..., in CUDA C++.

    Knows + - * /, signs, conditional expressions on one comparison, functions of a table, and numbers written
    float32(...). A bare number would make Numba compute in float64.

    Raises:
        EdBatchError: the expression holds anything else.

    Example:
        >>> cuda_expression("v0 if v0 > float32(0) else float32(0.3) * v0")
        '(v0 > 0.0f ? v0 : (0.30000001192092896f * v0))'
    """
    try:
        return _value(ast.parse(expression, mode="eval").body, functions)
    except (SyntaxError, ValueError) as error:
        raise EdBatchError(f"the scalar expression {expression!r} has no translation to CUDA: {error}") from None


CUDA = Language(
    kernel=KERNEL,
    place="float* p{0}, long long d{0}, const int* i{0}",
    between_places=", ",
    row="const long long r{0} = (i{0} ? i{0}[i] : i) * d{0};",
    value="const float v{0} = {1};",
    store="{0} = v{1};",
    indents=(4, 4),
    expression=cuda_expression,
)


def _value(node: ast.expr, functions: Mapping[str, tuple[str, int]]) -> str:
    def value(operand: ast.expr) -> str:
        return _value(operand, functions)

    match node:
        case ast.Name(name) if re.fullmatch("v[0-9]+", name):
            return name
        case ast.Call(ast.Name("float32"), [number], []):
            return _number(number)
        case ast.Call(ast.Name(name), arguments, []) if functions.get(name, ("", -1))[1] == len(arguments):
            return f"{functions[name][0]}({', '.join(map(value, arguments))})"
        case ast.UnaryOp(sign, operand) if type(sign) in SIGNS:
            return f"({SIGNS[type(sign)]}{value(operand)})"
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            return f"({value(left)} {OPERATORS[type(operator)]} {value(right)})"
        case ast.IfExp(ast.Compare(left, [comparison], [right]), then, other) if type(comparison) in COMPARISONS:
            condition = f"{value(left)} {COMPARISONS[type(comparison)]} {value(right)}"
            return f"({condition} ? {value(then)} : {value(other)})"
    raise ValueError(f"unexpected {ast.unparse(node)!r}")


def _number(node: ast.expr) -> str:
    """A literal whose value is a float32 exactly, so that no compiler rounds it another way."""
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            sign = 1
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)) if not isinstance(number, bool):
            sign = -1
        case _:
            raise ValueError(f"expected a number in float32(...), got {ast.unparse(node)!r}")
    try:
        with np.errstate(over="ignore"):
            rounded = float(np.float32(number))
    except OverflowError:
        raise ValueError("an integer is too large for float32") from None
    text = "INFINITY" if math.isinf(rounded) else f"{rounded!r}f"
    return text if sign > 0 else f"(-{text})"
