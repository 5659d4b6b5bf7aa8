"""Update rules of optimizers as data, and the one walk that writes them out in any language."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edbatch.errors import EdBatchError

#: What expressions may call, with the numbers of arguments.
FUNCTIONS = {"abs": 1, "maximum": 2, "minimum": 2, "sqrt": 1}
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
SIGNS = (ast.UAdd, ast.USub)


@dataclass(frozen=True, eq=False)  # found by identity in every update: comparing names and text takes as long as a call
class Rule:
    """How one entry of a parameter changes by its gradient, and what is remembered of it.

    Args:
        slots: names of the numbers that are remembered for every entry; 0 at first.
        constants: names of the numbers that are the same for all entries.
        body: assignments, one after the other, to the parameter `p`, to slots, and to names that last for this entry.
            Expressions are made of + - * /, `FUNCTIONS`, and names: `p`, the gradient `g`, slots, constants, and what
            was assigned before. Numbers are constants with a name, so that all is computed in the parameter's dtype.

    Raises:
        EdBatchError: the body holds anything else, or never reads p, g, a slot or a constant as it was given.

    Example:
        >>> Rule(("velocity",), ("lr", "keep"), "velocity = keep * velocity + g; p = p - lr * velocity").slots
        ('velocity',)
        >>> Rule((), (), "p = p - 2 * g")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: the update rule 'p = p - 2 * g': unexpected '2'
    """

    slots: tuple[str, ...]
    constants: tuple[str, ...]
    body: str

    def __post_init__(self) -> None:
        _lines(LITERAL, self)


@dataclass(frozen=True)
class Language:
    """How a language spells a rule.

    Args:
        kernel: all of it, around what is passed as {constants} and the lines {body}, which run once an entry.
        passed: how constant {0} is passed.
        constant, parameter, gradient, slot: how these are read; constant {0}, slot {0}.
        value: defines v{0} as {1}.
        store: writes v{1} to {0}.
        indent: of the lines of the body.
        expression: from an expression of values v0, v1, ... to the language's own.
    """

    kernel: str
    passed: str
    constant: str
    parameter: str
    gradient: str
    slot: str
    value: str
    store: str
    indent: int
    expression: Callable[[str], str]


#: For people to read.
LITERAL = Language("{body}", "", "constant{0}", "p", "g", "slot{0}", "v{0} = {1}", "{0} = v{1}", 0, str)


def source_in(language: Language, rule: Rule) -> str:
    """The rule's source. Constants, p, g, slots, and then what is computed, are values v0, v1, ...

    Example:
        >>> momentum = Rule(("velocity",), ("lr", "keep"), "velocity = keep * velocity + g; p = p - lr * velocity")
        >>> print(source_in(LITERAL, momentum))
        v0 = constant0
        v1 = constant1
        v2 = p
        v3 = g
        v4 = slot0
        v5 = v1 * v4 + v3
        v6 = v2 - v0 * v5
        p = v6
        slot0 = v5
    """
    constants = "".join(language.passed.format(number) for number in range(len(rule.constants)))
    body = "\n".join(" " * language.indent + line for line in _lines(language, rule))
    return language.kernel.replace("{constants}", constants).replace("{body}", body)


def _lines(language: Language, rule: Rule) -> list[str]:
    """What runs once an entry: memory is read at the beginning, and written at the end."""
    names = (*rule.constants, "p", "g", *rule.slots)
    if len(set(names)) < len(names):
        raise EdBatchError(f"the update rule {rule.body!r}: a name occurs twice among {', '.join(names)}")
    places = [language.constant.format(number) for number in range(len(rule.constants))]
    places += [language.parameter, language.gradient]
    places += [language.slot.format(number) for number in range(len(rule.slots))]
    lines = [language.value.format(number, place) for number, place in enumerate(places)]
    newest = {name: number for number, name in enumerate(names)}  # of each name's values
    unused, changed = set(names), set[str]()
    for number, (target, expression) in enumerate(_assignments(rule.body), len(names)):
        for read in _names(expression):
            if read.id not in newest:
                raise EdBatchError(f"the update rule {rule.body!r}: {read.id!r} has no value")
            unused.discard(read.id)
            read.id = f"v{newest[read.id]}"
        if target == "g" or target in rule.constants or target in unused:
            why = "before it is read" if target in unused else "but is given"
            raise EdBatchError(f"the update rule {rule.body!r}: {target!r} is assigned to, {why}")
        lines.append(language.value.format(number, language.expression(ast.unparse(expression))))
        newest[target] = number
        changed.add(target)
    if unused:
        raise EdBatchError(f"the update rule {rule.body!r}: does not read {', '.join(sorted(unused))}")
    return lines + [
        language.store.format(place, newest[name]) for name, place in zip(names, places, strict=True) if name in changed
    ]


def _assignments(body: str) -> Iterator[tuple[str, ast.expr]]:
    """Names and what is assigned to them, checked."""
    try:
        for statement in ast.parse(body).body:
            match statement:
                case ast.Assign([ast.Name(target)], expression):
                    _check(expression)
                    yield target, expression
                case _:
                    raise ValueError(f"unexpected {ast.unparse(statement)!r}")
    except (SyntaxError, ValueError) as error:
        raise EdBatchError(f"the update rule {body!r}: {error}") from None


def _check(node: ast.expr) -> None:
    match node:
        case ast.Name():
            return
        case ast.Call(ast.Name(name), arguments, []) if FUNCTIONS.get(name) == len(arguments):
            operands = arguments
        case ast.UnaryOp(sign, operand) if isinstance(sign, SIGNS):
            operands = [operand]
        case ast.BinOp(left, operator, right) if isinstance(operator, OPERATORS):
            operands = [left, right]
        case _:
            raise ValueError(f"unexpected {ast.unparse(node)!r}")
    for operand in operands:
        _check(operand)


def _names(node: ast.expr) -> Iterator[ast.Name]:
    """The names that are read, from left to right; not those of functions."""
    if isinstance(node, ast.Name):
        yield node
    for child in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _names(child)
