"""Scalar expressions: a little of Python's syntax, for what one entry's value is.

Names, numbers, + - * /, comparisons, `and`, `or`, `not`, conditional expressions and calls of functions; lines
`name = expression` before the last. Operators are functions with names, too: `a + b` is `add(a, b)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from edbatch.errors import EdBatchError

OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.USub: "negate", ast.UAdd: "same",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal",
    ast.NotEq: "different", ast.And: "both", ast.Or: "either", ast.Not: "no",
    ast.BitAnd: "bit_and", ast.BitXor: "bit_xor", ast.LShift: "shift_left", ast.RShift: "shift_right",
}  # fmt: skip


@dataclass(frozen=True)
class Name:
    """What is given under a name."""

    text: str


@dataclass(frozen=True)
class Number:
    """A literal, as it is written; or inf, nan."""

    text: str


@dataclass(frozen=True)
class Call:
    """A function of earlier terms, by their positions."""

    function: str
    operands: tuple[int, ...]


Term = Name | Number | Call
V = TypeVar("V")


@cache
def terms(text: str) -> tuple[Term, ...]:
    """An expression as terms, each once, operands before users; the last is its value.

    Raises:
        EdBatchError: the text has something that is no part of this language.

    Example:
        >>> terms("x if x > 0 else slope * x")[2:]
        (Call(function='greater', operands=(0, 1)), Name(text='slope'), Call(function='multiply', operands=(3, 0)),
         Call(function='select', operands=(2, 0, 4)))
    """
    try:
        return _Reader().read(ast.parse(text.strip()))
    except (SyntaxError, ValueError) as error:
        raise EdBatchError(f"the scalar expression {text!r}: {error}") from None


def polynomial(x: str, *coefficients: float) -> str:
    """The text of a polynomial by Horner, highest power first."""
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"({text} * {x} + {coefficient!r})"
    return text


def evaluate(text: str, values: Mapping[str, V], number: Callable[[str], V], call: Callable[[str, list[V]], V]) -> V:
    """An expression's value, in whatever a language has for values.

    Args:
        text: the expression.
        values: of the names that it reads.
        number: the value of a literal, given as it is written.
        call: the value of a function of values; or raises an EdBatchError.

    Raises:
        EdBatchError: the text is no expression, or has a name or a function that is not known.

    Example:
        >>> evaluate("x + 1", {"x": "a"}, str, lambda function, operands: f"{function}({', '.join(operands)})")
        'add(a, 1)'
    """
    found: list[V] = []
    for term in terms(text):
        match term:
            case Name(name) if name not in values:
                raise EdBatchError(f"the scalar expression {text!r}: no value {name!r}")
            case Name(name):
                found.append(values[name])
            case Number(literal):
                found.append(number(literal))
            case Call(function, operands):
                try:
                    found.append(call(function, [found[operand] for operand in operands]))
                except EdBatchError as error:
                    raise EdBatchError(f"the scalar expression {text!r}: {error}") from None
    return found[-1]


class _Reader:
    def __init__(self) -> None:
        self._terms: dict[Term, int] = {}
        self._assigned: dict[str, int] = {}

    def read(self, module: ast.Module) -> tuple[Term, ...]:
        for number, statement in enumerate(module.body, 1):
            match statement:
                case ast.Assign([ast.Name(name)], value) if number < len(module.body):
                    self._assigned[name] = self._value(value)
                case ast.Expr(value) if number == len(module.body):
                    if self._value(value) != len(self._terms) - 1:
                        self._terms[Call("same", (self._value(value),))] = len(self._terms)
                    return tuple(self._terms)
                case _:
                    raise ValueError(f"unexpected {ast.unparse(statement)!r}")
        raise ValueError("expected an expression")

    def _value(self, node: ast.expr) -> int:
        match node:
            case ast.Name(name) if name in self._assigned:
                return self._assigned[name]
            case ast.Name("inf" | "nan" as name):
                return self._term(Number(name))
            case ast.Name(name):
                return self._term(Name(name))
            case ast.Constant(int() | float() as number) if not isinstance(number, bool):
                return self._term(Number(repr(number)))
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)) if not isinstance(number, bool):
                return self._term(Number(f"-{number!r}"))
            case ast.UnaryOp(operator, operand) if type(operator) in OPERATORS:
                return self._call(OPERATORS[type(operator)], operand)
            case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
                return self._call(OPERATORS[type(operator)], left, right)
            case ast.Compare(left, [operator], [right]) if type(operator) in OPERATORS:
                return self._call(OPERATORS[type(operator)], left, right)
            case ast.BoolOp(operator, [first, *others]):
                value = self._value(first)
                for other in others:
                    value = self._term(Call(OPERATORS[type(operator)], (value, self._value(other))))
                return value
            case ast.IfExp(test, then, other):
                return self._call("select", test, then, other)
            case ast.Call(ast.Name(function), arguments, []):
                return self._call(function, *arguments)
        raise ValueError(f"unexpected {ast.unparse(node)!r}")

    def _call(self, function: str, *operands: ast.expr) -> int:
        return self._term(Call(function, tuple(map(self._value, operands))))

    def _term(self, term: Term) -> int:
        return self._terms.setdefault(term, len(self._terms))
