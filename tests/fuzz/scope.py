"""What is there while a program is made: values with their shapes and numbers, among which calls choose operands."""

import numpy as np

from tests.fuzz import oracle
from tests.fuzz.calls import CALLS, NUMBERS
from tests.fuzz.methods import as_method
from tests.fuzz.program import Statement

LARGEST = 8.0  # no value goes beyond it, so that programs are well conditioned

UNFIT = (ValueError, IndexError, TypeError, ZeroDivisionError, np.exceptions.AxisError)  # raised by what is no program


class Scope:
    """A graph, or the body of a cell; its statements run on the oracle as they are made.

    Args:
        random: what chooses.
        names: all names of the program, and their values.
        dim: the usual size of an axis.
        before: what stands in front of its statements.
        letter: of the names of its values.
        parameters, tables: names that it may use.

    Attributes:
        values: names of expressions.
        integers, numbers: in a cell, arguments that are not.
        inlines: whether bodies of cells are recorded op by op.
        is_of_many: whether it is computed for many at once, which takes no array that is larger than theirs.
        said: what values were computed by, and their names.
    """

    def __init__(self, random, names, dim, before, letter, parameters, tables):
        self.random, self.names, self.dim, self.before, self.letter = random, names, dim, before, letter
        self.parameters, self.tables = parameters, tables
        self.values, self.integers, self.numbers, self.inlines = [], [], [], False
        self.is_of_many = False
        self.statements, self.said = [], []

    # What is there.

    def shape_of(self, name):
        return np.shape(self.data(name))

    def size_of(self, name):
        return int(np.prod(self.shape_of(name)))

    def data(self, text):
        found = self.names[text] if text in self.names else eval(text, self.names)
        return found.data if isinstance(found, oracle.Operand) else np.asarray(found)

    # What calls choose.

    def value(self, shape=None, ndim=None, last=None, along=None, low=None, high=None):
        """A value (or a simple function of one) with what is asked for."""

        def fits(name):
            found = self.shape_of(name)
            if along is not None:
                of, axis = along
                return len(found) == len(of) and all(a == b for i, (a, b) in enumerate(zip(found, of)) if i != axis)  # noqa: B905
            return (
                (shape is None or found == shape)
                and (ndim is None or len(found) in ndim)
                and (last is None or found[-1:] == (last,))
            )

        chosen = [name for name in self.values if fits(name)]
        if not chosen:
            raise LookupError("no such value")
        if self.random.random() < 0.5:
            chosen = chosen[-5:]
        name = self.random.choice(chosen)
        numbers = self.data(name)
        if (low is None or numbers.min() >= low) and (high is None or numbers.max() <= high):
            return name
        if low is None:
            return f"eb.tanh({name})"
        return f"(eb.square({name}) + 0.5)" if high is None else f"eb.sigmoid({name})"

    def operand(self, like=None, shape=None, ndim=None, first=None, matrix=False, low=None):
        """A value, a parameter, a number or an array; `like`: that broadcasts with a shape."""
        if like is not None:
            shape = self.random.choice([like, like, like, (), like[1:], (1,) * len(like)])
        if shape is not None and low is None and self.random.random() < 0.2:
            return self.array(shape) if shape else self.constant()
        named = [p for p in self.parameters if low is None or self.data(p).min() >= low]
        for _ in range(10):
            try:
                x = self.random.choice(named) if named and self.random.random() < (0.6 if matrix else 0.2) else None
                x = x or self.value(shape=shape, ndim=ndim, low=low)
            except LookupError:
                continue
            found = self.shape_of(x)
            if shape in (None, found) and (ndim is None or len(found) in ndim) and first in (None, *found[:1]):
                return x
        if like is not None and low is not None:
            return "2.0"
        raise LookupError("no such operand")

    def parameter(self, shape=None):
        return self.random.choice([p for p in self.parameters if shape is None or self.shape_of(p) == shape])

    def listed(self, shape=None, count=None):
        """Values of one shape, some more than once."""
        shape = self.shape_of(self.value()) if shape is None else shape
        count = count or self.random.choice([1, 2, 2, 3, 5, 9])
        return "[" + ", ".join(self.value(shape=shape) for _ in range(count)) + "]"

    def shape(self):
        d = self.dim
        return self.random.choice([(), (d,), (d,), (d,), (d,), (2 * d,), (2, d), (d, d), (1,), (3, d)])

    def array(self, shape):
        """Numbers that float32 holds exactly, as text."""
        numbers = np.array([self.random.randrange(-64, 65) / 32 for _ in range(int(np.prod(shape)))])
        text = f"np.array({numbers.reshape(shape).tolist()})"
        return f"eb.input({text})" if self.is_of_many else text

    def constant(self, symbol=""):
        if self.numbers and self.random.random() < 0.5:
            return self.random.choice(self.numbers)
        number = self.random.choice(NUMBERS)
        return f"({number})" if symbol == "-" and number < 0 else str(number)

    def chance(self, text):
        return text if text and self.random.random() < 0.5 else ""

    def integer(self, len_of=None, limit=None):
        """A literal, or in a cell mostly one of its integer arguments."""
        if self.integers and self.random.random() < 0.8:
            return self.random.choice(self.integers)
        if limit is not None:
            return str(self.random.randrange(limit))
        size = self.shape_of(len_of)[0]
        return str(self.random.randrange(size) if self.random.random() < 0.8 else self.random.randrange(-size, 0))

    # Statements.

    def add(self, name):
        """A statement that calls the op of this name, if one can be made."""
        try:
            text = CALLS[name](self)
        except LookupError:
            return None
        return self.state(as_method(self.random, text) if self.random.random() < 0.3 else text)

    def state(self, text, many=1):
        """Bind new names to the results; None where a number would be too large or too close to nothing."""
        return self.bind(text, [self.fresh(self.letter) for _ in range(many)])

    def bind(self, text, new):
        """Bind these names, if all that they stand for is fit."""
        statement = Statement(f"{', '.join(new)} = {text}", self.before)
        try:
            self.run(statement)
        except UNFIT:
            return None
        if not all(map(fit, (self.names[name] for name in new))):
            return None
        self.values += [name for name in new if name[0] == self.letter]
        self.said.append((text, new))
        self.statements.append(statement)
        return new

    def fresh(self, letter):
        self.names["count"] = self.names.get("count", 0) + 1
        return f"{letter}{self.names['count']}"

    def run(self, statement):
        with np.errstate(all="ignore"):
            exec(statement.source(), self.names)


def fit(found):
    """Whether it is of a graph, and has numbers that are neither too large nor none."""
    if isinstance(found, oracle.Vertices):
        return all(all(map(fit, leaves(x.scattered))) and (x.pushed is None or fit(x.pushed)) for x in found.vertices)
    if not isinstance(found, oracle.Expression):
        return False  # computed without a graph
    return found.data.size > 0 and np.isfinite(found.data).all() and np.abs(found.data).max() <= LARGEST


def leaves(x):
    return x if isinstance(x, tuple) else (x,)
