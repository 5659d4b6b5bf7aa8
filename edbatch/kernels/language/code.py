"""Text of a kernel, written instruction after instruction: what the two languages have in common."""

from __future__ import annotations

from typing import Any, NamedTuple


class Value(NamedTuple):
    """What stands for a value: its type ("float", "double", "i32", "i64", "i1", a pointer's) and its name.

    A literal has the type "literal" until it meets another value; its name is Python's.
    """

    type: str
    name: str


FLOATS = ("float", "double")
LOGIC = ("both", "either", "no")
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "different")
OF_INTEGERS = ("add", "subtract", "multiply")  # where all operands are
OF_NUMBERS = ("divide", "negate", "abs", "floor")
ZERO = Value("literal", "0")


def whole(number: int) -> Value:
    """An integer of 64 bits."""
    return Value("i64", str(number))


class Code:
    """The lines of one function.

    A language adds how it writes
        operator(name, operands of one type, type of the result), called(name, operands) of what is no operator;
        select(test, a, b), converted(value, type): truth as 1 or 0, a number as whether it is not 0;
        constant(number), sum(a, b) and product(a, b) of integers;
        at_address(type, address), entry(type, array, at): places; load(type, place), store(value, place),
        add_to(value, place);
        when(test), whose block runs if a test is true.

    Args:
        number: the type of the kernel's numbers, "float" or "double".
    """

    operator: Any
    called: Any
    select: Any
    converted: Any
    sum: Any
    product: Any

    def __init__(self, number: str) -> None:
        self.number = number
        self.lines: list[str] = []

    def applied(self, name: str, operands: list[Value]) -> Value:
        """The value of a function of the table; its operands are converted as needed.

        Raises:
            EdBatchError: there is no such function.
        """
        if name == "same":
            return operands[0]
        if name == "select":
            return self.select(self.converted(operands[0], "i1"), *self.alike(operands[1:]))
        if name in LOGIC:
            return self.operator(name, [self.converted(x, "i1") for x in operands], "i1")
        if name in COMPARISONS:
            return self.operator(name, self.alike(operands), "i1")
        if name in OF_INTEGERS:
            operands = self.alike(operands, of_truth=self.number)
        elif name in OF_NUMBERS:
            operands = self.alike([x if x.type == "literal" else self.as_number(x) for x in operands])
        else:
            return self.called(name, operands)
        return self.operator(name, operands, operands[0].type)

    def alike(self, operands: list[Value], of_truth: str = "i1") -> list[Value]:
        """Operands of one type: that which is not a literal's; of a number and an integer, the number's."""
        types = {operand.type for operand in operands} - {"literal"}
        if types == {"i1"}:
            types = {of_truth}
        found = types & set(FLOATS)
        if "i1" in types and any(operand.type == "literal" for operand in operands):
            found = {self.number}
        (type,) = found or (types if len(types) == 1 else {self.number})
        return [self.converted(operand, type) for operand in operands]

    def as_number(self, value: Value) -> Value:
        """A value as a number."""
        return value if value.type in FLOATS else self.converted(value, self.number)

    def add(self, a: Value, b: Value) -> Value:
        """Of addresses and numbers of entries."""
        return b if a.name == "0" else a if b.name == "0" else self.sum(a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        """Of addresses and numbers of entries."""
        if "0" in (a.name, b.name):
            return whole(0)
        return b if a.name == "1" else a if b.name == "1" else self.product(a, b)

    def named(self, value: Value, name: str) -> Value:
        """A value that is written once, however often it is read."""
        return value
