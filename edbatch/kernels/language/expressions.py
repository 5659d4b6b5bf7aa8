"""Scalar expressions: a little of Python's syntax, for what one entry's value is.

Names, numbers, + - * /, comparisons, `and`, `or`, `not`, conditional expressions and calls of functions; lines
`name = expression` before the last. Operators are functions with names, too: `a + b` is `add(a, b)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from typing import Generic, TypeVar

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
    try:
        return _Evaluation({**values}, number, call).value_of(_parsed(text).body)
    except (EdBatchError, SyntaxError, ValueError) as error:
        raise EdBatchError(f"the scalar expression {text!r}: {error}") from None


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text.strip())


class _Evaluation(Generic[V]):
    """Of one expression; `values`: of its names, those that its lines assign, too."""

    def __init__(self, values: dict[str, V], number: Callable[[str], V], call: Callable[[str, list[V]], V]) -> None:
        self._values, self._number, self._call = values, number, call

    def value_of(self, lines: list[ast.stmt]) -> V:
        for number, statement in enumerate(lines, 1):
            match statement:
                case ast.Assign([ast.Name(name)], value) if number < len(lines):
                    self._values[name] = self._value(value)
                case ast.Expr(value) if number == len(lines):
                    return self._value(value)
                case _:
                    raise ValueError(f"unexpected {ast.unparse(statement)!r}")
        raise ValueError("expected an expression")

    def _value(self, node: ast.expr) -> V:
        match node:
            case ast.Name(name) if name in self._values:
                return self._values[name]
            case ast.Name("inf" | "nan" as name):
                return self._number(name)
            case ast.Name(name):
                raise ValueError(f"no value {name!r}")
            case ast.Constant(int() | float() as number) if not isinstance(number, bool):
                return self._number(repr(number))
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)) if not isinstance(number, bool):
                return self._number(f"-{number!r}")
            case ast.UnaryOp(operator, operand) if type(operator) in OPERATORS:
                return self._called(OPERATORS[type(operator)], operand)
            case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
                return self._called(OPERATORS[type(operator)], left, right)
            case ast.Compare(left, [operator], [right]) if type(operator) in OPERATORS:
                return self._called(OPERATORS[type(operator)], left, right)
            case ast.BoolOp(operator, [first, *others]):
                value = self._value(first)
                for other in others:
                    value = self._call(OPERATORS[type(operator)], [value, self._value(other)])
                return value
            case ast.IfExp(test, then, other):
                return self._called("select", test, then, other)
            case ast.Call(ast.Name(function), arguments, []):
                return self._called(function, *arguments)
        raise ValueError(f"unexpected {ast.unparse(node)!r}")

    def _called(self, function: str, *operands: ast.expr) -> V:
        return self._call(function, [self._value(operand) for operand in operands])
