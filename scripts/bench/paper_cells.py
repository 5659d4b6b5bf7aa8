"""The seven cells of ED-Batch's tables 2 and 4, each with a parameter per gate, and what its tables say of them."""

# mypy: disable-error-code="attr-defined"
# Parameters become attributes by name.
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb


class Cell:
    """Parameters as attributes; biases begin small and different.

    Args:
        model: collection that they are added to.
        d: size of all vectors.
        matrices, biases: their names; those of matrices [d, 2 d] end with "2".
    """

    def __init__(self, model: eb.ParameterCollection, d: int, matrices: str, biases: str) -> None:
        for name in matrices.split():
            setattr(self, name, model.add_parameters((d, 2 * d if name.endswith("2") else d)))
        for at, name in enumerate(biases.split()):
            setattr(self, name, model.add_parameters((d,), init=0.01 * (at + 1)))


class GRUCell(Cell):
    """Gated recurrent unit (Cho et al. 2014, as in cuDNN)."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        super().__init__(model, d, "W_z U_z W_r U_r W_n U_n", "b_z b_r b_n c_n")

    @eb.cell
    def step(self, x: Any, h: Any) -> Any:
        z = eb.sigmoid(self.W_z @ x + self.U_z @ h + self.b_z)
        r = eb.sigmoid(self.W_r @ x + self.U_r @ h + self.b_r)
        n = eb.tanh(self.W_n @ x + self.b_n + r * (self.U_n @ h + self.c_n))
        return (1 - z) * n + z * h


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997)."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        super().__init__(model, d, "W_i U_i W_f U_f W_o U_o W_u U_u", "b_i b_f b_o b_u")

    @eb.cell
    def step(self, x: Any, h: Any, c: Any) -> Any:
        i = eb.sigmoid(self.W_i @ x + self.U_i @ h + self.b_i)
        f = eb.sigmoid(self.W_f @ x + self.U_f @ h + self.b_f)
        o = eb.sigmoid(self.W_o @ x + self.U_o @ h + self.b_o)
        u = eb.tanh(self.W_u @ x + self.U_u @ h + self.b_u)
        c = i * u + f * c
        return o * eb.tanh(c), c


class MVCell(Cell):
    """Matrix-vector recursion (Socher et al. 2012): p = tanh(W [Ba; Ab] + b), P = V [A; B]."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        super().__init__(model, d, "W_a W_b V_a V_b", "b_p")

    @eb.cell
    def compose(self, a: Any, A: Any, b: Any, B: Any) -> Any:
        p = eb.tanh(self.W_a @ (B @ a) + self.W_b @ (A @ b) + self.b_p)
        return p, self.V_a @ A + self.V_b @ B


class TreeGRU(Cell):
    """Binary TreeGRU: reset gates per child, update gates per child and for what is new."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        gates = "L_rl R_rl L_rr R_rr L_zl R_zl L_zr R_zr L_zn R_zn"
        super().__init__(model, d, f"{gates} V_l V_r W_z W_n", "b_rl b_rr b_zl b_zr b_zn b_n c_z c_n")

    @eb.cell
    def compose(self, hl: Any, hr: Any) -> Any:
        rl = eb.sigmoid(self.L_rl @ hl + self.R_rl @ hr + self.b_rl)
        rr = eb.sigmoid(self.L_rr @ hl + self.R_rr @ hr + self.b_rr)
        zl = eb.sigmoid(self.L_zl @ hl + self.R_zl @ hr + self.b_zl)
        zr = eb.sigmoid(self.L_zr @ hl + self.R_zr @ hr + self.b_zr)
        zn = eb.sigmoid(self.L_zn @ hl + self.R_zn @ hr + self.b_zn)
        n = eb.tanh(self.V_l @ (rl * hl) + self.V_r @ (rr * hr) + self.b_n)
        return zl * hl + zr * hr + zn * n

    @eb.cell
    def leaf(self, x: Any) -> Any:
        z = eb.sigmoid(self.W_z @ x + self.c_z)
        return (1 - z) * eb.tanh(self.W_n @ x + self.c_n)


class TreeLSTM(Cell):
    """Binary TreeLSTM whose forget gates read their own child."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        super().__init__(model, d, "U_i2 U_o2 U_u2 W_i W_o W_u U_fl U_fr", "b_i b_o b_u c_i c_o c_u b_f")

    @eb.cell
    def compose(self, h1: Any, c1: Any, h2: Any, c2: Any) -> Any:
        e = eb.concatenate([h1, h2])
        i, o = eb.sigmoid(self.U_i2 @ e + self.b_i), eb.sigmoid(self.U_o2 @ e + self.b_o)
        u = eb.tanh(self.U_u2 @ e + self.b_u)
        f1, f2 = eb.sigmoid(self.U_fl @ h1 + self.b_f), eb.sigmoid(self.U_fr @ h2 + self.b_f)
        c = i * u + f1 * c1 + f2 * c2
        return o * eb.tanh(c), c

    @eb.cell
    def leaf(self, x: Any) -> Any:
        i, o = eb.sigmoid(self.W_i @ x + self.c_i), eb.sigmoid(self.W_o @ x + self.c_o)
        c = i * eb.tanh(self.W_u @ x + self.c_u)
        return o * eb.tanh(c), c


class Case(NamedTuple):
    """One cell of the paper, and what its tables report of it.

    Attributes:
        name: in the paper.
        make: its owner, from a collection and a size.
        cell: attribute of the owner.
        arguments: how many.
        kernels, kilobytes, latency: table 2: with DyNet's allocation, and with a PQ tree; latency in microseconds.
        compiling: table 4, in milliseconds.
    """

    name: str
    make: Callable[[eb.ParameterCollection, int], Any]
    cell: str
    arguments: int
    kernels: tuple[int, int]
    kilobytes: tuple[float, float]
    latency: tuple[float, float]
    compiling: float

    def values(self, calls: int, d: int) -> list[np.ndarray]:
        """Random arguments of a batch of calls."""
        random = np.random.default_rng(0)
        matrices = (1, 3) if self.name == "MVCell" else ()
        shapes = [(calls, d, d) if at in matrices else (calls, d) for at in range(self.arguments)]
        return [random.standard_normal(shape).astype("float32") for shape in shapes]


CASES = (
    Case("GRUCell", GRUCell, "step", 2, (6, 2), (666, 14), (110, 70), 4.82),
    Case("LSTMCell", LSTMCell, "step", 3, (4, 1), (1054, 16), (200, 130), 12.95),
    Case("MVCell", MVCell, "compose", 4, (2, 2), (260, 260), (80, 80), 1.53),
    Case("TreeGRU-Internal", TreeGRU, "compose", 2, (8, 2), (552, 16), (240, 150), 10.43),
    Case("TreeGRU-Leaf", TreeGRU, "leaf", 1, (4, 2), (268, 8), (90, 70), 2.91),
    Case("TreeLSTM-Internal", TreeLSTM, "compose", 4, (7, 3), (1064, 22), (190, 120), 29.89),
    Case("TreeLSTM-Leaf", TreeLSTM, "leaf", 1, (3, 1), (396, 6), (120, 90), 3.64),
)
