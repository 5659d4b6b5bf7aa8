"""Scalar expressions: a little of Python's syntax, for what one entry's value is.

Names, numbers, + - * /, comparisons, `and`, `or`, `not`, conditional expressions and calls of functions; lines
`name = expression` before the last. Operators are functions with names, too: `a + b` is `add(a, b)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from edbatch.errors import EdBatchError

OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.USub: "negate", ast.UAdd: "same",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal",
    ast.NotEq: "different", ast.And: "both", ast.Or: "either", ast.Not: "no",
    ast.BitAnd: "bit_and", ast.BitXor: "bit_xor", ast.LShift: "shift_left", ast.RShift: "shift_right",
}  # fmt: skip

V = TypeVar("V")


def evaluate(text: str, values: Mapping[str, V], number: Callable[[str], V], call: Callable[[str, list[V]], V]) -> V:
    """An expression's value, in whatever a language has for values.

    Args:
        text: the expression.
        values: of the names that it reads.
        number: the value of a literal, given as it is written; or of inf, nan.
        call: the value of a function of values; or raises an EdBatchError.

    Raises:
        EdBatchError: the text is no expression, or has a name or a function that is not known.

    Example:
        >>> evaluate("x + 1", {"x": "a"}, str, lambda function, operands: f"{function}({', '.join(operands)})")
        'add(a, 1)'
    """
    known = {**values}  # and those that lines assign

    def value_of(node: ast.expr) -> V:
        match node:
            case ast.Name(name) if name in known:
                return known[name]
            case ast.Name("inf" | "nan" as name):
                return number(name)
            case ast.Name(name):
                raise ValueError(f"no value {name!r}")
            case ast.Constant(int() | float() as literal) if not isinstance(literal, bool):
                return number(repr(literal))
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as literal)) if not isinstance(literal, bool):
                return number(f"-{literal!r}")
            case ast.UnaryOp(operator, operand) if type(operator) in OPERATORS:
                return called(OPERATORS[type(operator)], operand)
            case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
                return called(OPERATORS[type(operator)], left, right)
            case ast.Compare(left, [operator], [right]) if type(operator) in OPERATORS:
                return called(OPERATORS[type(operator)], left, right)
            case ast.BoolOp(operator, [first, *others]):
                value = value_of(first)
                for other in others:
                    value = call(OPERATORS[type(operator)], [value, value_of(other)])
                return value
            case ast.IfExp(test, then, other):
                return called("select", test, then, other)
            case ast.Call(ast.Name(function), arguments, []):
                return called(function, *arguments)
        raise ValueError(f"unexpected {ast.unparse(node)!r}")

    def called(function: str, *operands: ast.expr) -> V:
        return call(function, [value_of(operand) for operand in operands])

    try:
        lines = _parsed(text).body
        for at, statement in enumerate(lines, 1):
            match statement:
                case ast.Assign([ast.Name(name)], value) if at < len(lines):
                    known[name] = value_of(value)
                case ast.Expr(value) if at == len(lines):
                    return value_of(value)
                case _:
                    raise ValueError(f"unexpected {ast.unparse(statement)!r}")
        raise ValueError("expected an expression")
    except (EdBatchError, SyntaxError, ValueError) as error:
        raise EdBatchError(f"the scalar expression {text!r}: {error}") from None


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text.strip())
