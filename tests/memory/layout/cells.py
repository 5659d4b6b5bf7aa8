"""Cells as the planner sees them, written down from their equations; and a layout oracle that tries every order."""

from itertools import permutations

from edbatch.memory.layout.alignment import Alignment
from edbatch.memory.layout.batched_op import BatchedOp, Variable

D = 64


class Cell:
    """Collects variables by name (a capital first: a D x D matrix; `b_`: a bias) and batches."""

    def __init__(self):
        self.variables = []
        self.ops = []
        self._index = {}

    def index(self, name):
        if name not in self._index:
            matrix = name[0].isupper()
            space = "parameters" if name[:2] in ("W_", "U_", "V_", "b_") else "row"
            self._index[name] = len(self.variables)
            self.variables.append(Variable(name, D * D if matrix else D, space))
        return self._index[name]

    def op(self, name, result, *operands):
        """Space-separated names; one name stands for the whole batch."""
        k = len(result.split())
        slots = [[self.index(n) for n in slot.split()] for slot in operands]
        slots = [tuple(slot * k if len(slot) == 1 else slot) for slot in slots]
        self.ops.append(BatchedOp(name, tuple(self.index(n) for n in result.split()), tuple(slots)))


def names(prefix, parts):
    return " ".join(prefix + part for part in parts.split())


def lstm():
    cell, gates = Cell(), "i o f u"
    cell.op("matmul x", names("x", gates), names("W_", gates), "x")
    cell.op("matmul h", names("h", gates), names("U_", gates), "h")
    cell.op("add", names("s", gates), names("x", gates), names("h", gates))
    cell.op("add bias", names("z", gates), names("s", gates), names("b_", gates))
    cell.op("sigmoid", "i f o", "zi zf zo")
    cell.op("tanh", "u", "zu")
    cell.op("mul", "iu fc", "i f", "u c")
    cell.op("add c", "c2", "iu", "fc")
    cell.op("tanh c", "t", "c2")
    cell.op("mul h", "h2", "o", "t")
    return cell


def tree_lstm():
    cell, gates = Cell(), "i o u fl fr"
    cell.op("matmul left", names("l", gates), names("U_l", gates), "hl")
    cell.op("matmul right", names("r", gates), names("U_r", gates), "hr")
    cell.op("add", names("s", gates), names("l", gates), names("r", gates))
    cell.op("add bias", names("z", gates), names("s", gates), names("b_", gates))
    cell.op("sigmoid", "i o fl fr", "zi zo zfl zfr")
    cell.op("tanh", "u", "zu")
    cell.op("mul", "iu cfl cfr", "i fl fr", "u cl cr")
    cell.op("add 1", "c1", "cfl", "cfr")
    cell.op("add 2", "c", "c1", "iu")
    cell.op("tanh c", "t", "c")
    cell.op("mul h", "h", "o", "t")
    return cell


def mv_rnn():
    """(a, A) and (b, B): the vector p = tanh(W [Ba; Ab] + b), the matrix P = W_M [A; B]."""
    cell = Cell()
    cell.op("apply", "p1 p2", "B A", "a b")
    cell.op("matmul", "q1 q2", "W_1 W_2", "p1 p2")
    cell.op("matmul M", "P1 P2", "V_1 V_2", "A B")
    cell.op("add", "q", "q1", "q2")
    cell.op("add M", "P", "P1", "P2")
    cell.op("add bias", "z", "q", "b_")
    cell.op("tanh", "p", "z")
    return cell


CELLS = {function.__name__: function for function in (lstm, tree_lstm, mv_rnn)}


def paper_figure_3():
    """x4, x5 = f(x1, x3; x2, x1), then x6, x7, x8 = g(x4, x5, x3); the paper's layout is x2 x1 x3 x4 x5 x8 x6 x7."""
    variables = [Variable(f"x{i}", 1) for i in range(1, 9)]
    return variables, [BatchedOp("f", (3, 4), ((0, 2), (1, 0))), BatchedOp("g", (5, 6, 7), ((3, 4, 2),))]


def moved_by(variables, ops, order):
    """Entries copied under one order of one space, by trying every order of every batch without its own."""
    place = {index: at for at, index in enumerate(order)}
    total = 0
    for op in ops:
        slots = [slot for slot in (op.result, *op.operands) if len(set(slot)) > 1]
        total += min(
            sum(
                sum(variables[index].size for index in slot)
                for slot in slots
                if any(place[slot[run[i + 1]]] != place[slot[run[i]]] + 1 for i in range(len(run) - 1))
            )
            for run in ([range(len(op.result))] if op.ordered else permutations(range(len(op.result))))
        )
    return total


def least_moved(variables, ops):
    """The least that any order of the variables moves."""
    return min(moved_by(variables, ops, order) for order in permutations(range(len(variables))))


def random_case(rng, n, n_ops, widest=4, repeats=0.0):
    """Operations over random variables; with probability `repeats`, an operand draws with replacement."""
    variables = [Variable(f"v{i}", rng.choice((1, 1, 2, 3))) for i in range(n)]
    ops = []
    for number in range(n_ops):
        k = rng.randint(2, min(widest, n))
        operands = tuple(
            tuple(rng.choices(range(n), k=k) if rng.random() < repeats else rng.sample(range(n), k))
            for _ in range(rng.randint(0, 2))
        )
        ops.append(BatchedOp(f"op{number}", tuple(rng.sample(range(n), k)), operands))
    return variables, ops


def align(demands):
    """An order of all variables in the demands that meets every demand, or None if there is none."""
    alignment = Alignment(variable for demand in demands for variable in demand.variables).extended(demands)
    return None if alignment is None else alignment.order()
