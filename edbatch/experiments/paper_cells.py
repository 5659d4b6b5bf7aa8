"""The seven cells of the paper's tables 2 and 4, each with a parameter per gate, and beside it the same by hand.

By hand means what one writes in NumPy who knows the cell: weights stacked once and stored [in, out], one product per
input, element-wise ops in place on slices of its result.
"""

# mypy: disable-error-code="attr-defined"
# Parameters become attributes by name.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import edbatch as eb


def add_parameters(cell: Any, model: eb.ParameterCollection, shapes: dict[str, tuple[int, ...]]) -> None:
    """Parameters as attributes; biases begin small and different."""
    for at, (name, shape) in enumerate(shapes.items()):
        init = "glorot" if len(shape) > 1 else 0.01 * (at + 1)
        setattr(cell, name, model.add_parameters(shape, name=f"{type(cell).__name__}.{name}", init=init))


def stacked(*parameters: eb.Parameter) -> np.ndarray:
    """Values of weights side by side as [in, out], or of biases one after the other."""
    return np.ascontiguousarray(np.concatenate([parameter.value() for parameter in parameters]).T)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """In place; tanh is the fastest way to it in NumPy."""
    x *= 0.5
    np.tanh(x, out=x)
    x *= 0.5
    x += 0.5
    return x


class GRUCell:
    """Gated recurrent unit (Cho et al. 2014, as in cuDNN)."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        self.d = d
        add_parameters(self, model, {f"{kind}_{gate}": (d, d) for gate in "zrn" for kind in "WU"})
        add_parameters(self, model, {"b_z": (d,), "b_r": (d,), "b_n": (d,), "c_n": (d,)})

    @eb.cell
    def step(self, x: Any, h: Any) -> Any:
        z = eb.sigmoid(self.W_z @ x + self.U_z @ h + self.b_z)
        r = eb.sigmoid(self.W_r @ x + self.U_r @ h + self.b_r)
        n = eb.tanh(self.W_n @ x + self.b_n + r * (self.U_n @ h + self.c_n))
        return (1 - z) * n + z * h

    def by_hand(self) -> Callable[..., Any]:
        d = self.d
        W, U = stacked(self.W_z, self.W_r, self.W_n), stacked(self.U_z, self.U_r, self.U_n)
        b, c_n = stacked(self.b_z, self.b_r, self.b_n), self.c_n.value()

        def step(x: np.ndarray, h: np.ndarray) -> np.ndarray:
            from_x, from_h = x @ W, h @ U
            from_x += b
            gates = sigmoid(from_x[:, : 2 * d] + from_h[:, : 2 * d])
            z, r = gates[:, :d], gates[:, d:]
            n = from_h[:, 2 * d :] + c_n
            n *= r
            n += from_x[:, 2 * d :]
            np.tanh(n, out=n)
            h = h - n
            h *= z
            h += n
            return h

        return step


class LSTMCell:
    """Long short-term memory (Hochreiter and Schmidhuber 1997)."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        self.d = d
        add_parameters(self, model, {f"{kind}_{gate}": (d, d) for gate in "ifou" for kind in "WU"})
        add_parameters(self, model, {f"b_{gate}": (d,) for gate in "ifou"})

    @eb.cell
    def step(self, x: Any, h: Any, c: Any) -> Any:
        i = eb.sigmoid(self.W_i @ x + self.U_i @ h + self.b_i)
        f = eb.sigmoid(self.W_f @ x + self.U_f @ h + self.b_f)
        o = eb.sigmoid(self.W_o @ x + self.U_o @ h + self.b_o)
        u = eb.tanh(self.W_u @ x + self.U_u @ h + self.b_u)
        c = i * u + f * c
        return o * eb.tanh(c), c

    def by_hand(self) -> Callable[..., Any]:
        d = self.d
        W, U, b = (stacked(*(getattr(self, f"{kind}_{gate}") for gate in "ifou")) for kind in "WUb")

        def step(x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            gates = x @ W
            gates += h @ U
            gates += b
            s = sigmoid(gates[:, : 3 * d])
            c = s[:, d : 2 * d] * c
            c += s[:, :d] * np.tanh(gates[:, 3 * d :])
            return s[:, 2 * d :] * np.tanh(c), c

        return step


class MVCell:
    """Matrix-vector recursion (Socher et al. 2012): p = tanh(W [Ba; Ab] + b), P = V [A; B]."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        self.d = d
        add_parameters(self, model, dict.fromkeys(("W_1", "W_2", "V_1", "V_2"), (d, d)) | {"b": (d,)})

    @eb.cell
    def compose(self, a: Any, A: Any, b: Any, B: Any) -> Any:
        p = eb.tanh(self.W_1 @ (B @ a) + self.W_2 @ (A @ b) + self.b)
        return p, self.V_1 @ A + self.V_2 @ B

    def by_hand(self) -> Callable[..., Any]:
        W_1, W_2, b_p = stacked(self.W_1), stacked(self.W_2), self.b.value()
        V_1, V_2 = self.V_1.value(), self.V_2.value()

        def compose(a: np.ndarray, A: np.ndarray, b: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            p = (B @ a[:, :, None])[:, :, 0] @ W_1
            p += (A @ b[:, :, None])[:, :, 0] @ W_2
            p += b_p
            P = V_1 @ A
            P += V_2 @ B
            return np.tanh(p, out=p), P

        return compose


class TreeGRU:
    """Binary TreeGRU: reset gates per child, update gates per child and for what is new."""

    GATES = ("rl", "rr", "zl", "zr", "zn")

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        self.d = d
        add_parameters(self, model, {f"{side}_{gate}": (d, d) for gate in self.GATES for side in "LR"})
        add_parameters(self, model, {f"b_{gate}": (d,) for gate in self.GATES})
        add_parameters(self, model, {"V_l": (d, d), "V_r": (d, d), "b_n": (d,)})
        add_parameters(self, model, {"W_z": (d, d), "W_n": (d, d), "c_z": (d,), "c_n": (d,)})

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

    def compose_by_hand(self) -> Callable[..., Any]:
        d = self.d
        L, R, b = (stacked(*(getattr(self, f"{kind}_{gate}") for gate in self.GATES)) for kind in "LRb")
        V, b_n = np.concatenate([stacked(self.V_l), stacked(self.V_r)]), self.b_n.value()

        def compose(hl: np.ndarray, hr: np.ndarray) -> np.ndarray:
            gates = hl @ L
            gates += hr @ R
            gates += b
            sigmoid(gates)
            children = np.concatenate([hl, hr], axis=1)
            n = (gates[:, : 2 * d] * children) @ V
            n += b_n
            np.tanh(n, out=n)
            n *= gates[:, 4 * d :]
            children *= gates[:, 2 * d : 4 * d]
            n += children[:, :d]
            n += children[:, d:]
            return n

        return compose

    def leaf_by_hand(self) -> Callable[..., Any]:
        d = self.d
        W, b = stacked(self.W_z, self.W_n), stacked(self.c_z, self.c_n)

        def leaf(x: np.ndarray) -> np.ndarray:
            gates = x @ W
            gates += b
            z, n = sigmoid(gates[:, :d]), np.tanh(gates[:, d:])
            np.subtract(1, z, out=z)
            n *= z
            return n

        return leaf


class TreeLSTM:
    """Binary TreeLSTM whose forget gates read their own child."""

    def __init__(self, model: eb.ParameterCollection, d: int) -> None:
        self.d = d
        for gate in "iou":
            add_parameters(self, model, {f"U_{gate}": (d, 2 * d), f"b_{gate}": (d,)})
            add_parameters(self, model, {f"W_{gate}": (d, d), f"c_{gate}": (d,)})
        add_parameters(self, model, {"U_f1": (d, d), "U_f2": (d, d), "b_f": (d,)})

    @eb.cell
    def compose(self, h1: Any, c1: Any, h2: Any, c2: Any) -> Any:
        e = eb.concatenate([h1, h2])
        i, o = eb.sigmoid(self.U_i @ e + self.b_i), eb.sigmoid(self.U_o @ e + self.b_o)
        u = eb.tanh(self.U_u @ e + self.b_u)
        f1, f2 = eb.sigmoid(self.U_f1 @ h1 + self.b_f), eb.sigmoid(self.U_f2 @ h2 + self.b_f)
        c = i * u + f1 * c1 + f2 * c2
        return o * eb.tanh(c), c

    @eb.cell
    def leaf(self, x: Any) -> Any:
        i, o = eb.sigmoid(self.W_i @ x + self.c_i), eb.sigmoid(self.W_o @ x + self.c_o)
        c = i * eb.tanh(self.W_u @ x + self.c_u)
        return o * eb.tanh(c), c

    def compose_by_hand(self) -> Callable[..., Any]:
        d = self.d
        U, b = stacked(self.U_i, self.U_o, self.U_u), stacked(self.b_i, self.b_o, self.b_u)
        F1, F2, b_f = stacked(self.U_f1), stacked(self.U_f2), self.b_f.value()

        def compose(h1: np.ndarray, c1: np.ndarray, h2: np.ndarray, c2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            gates = np.concatenate([h1, h2], axis=1) @ U
            gates += b
            s = sigmoid(gates[:, : 2 * d])
            c = np.tanh(gates[:, 2 * d :])
            c *= s[:, :d]
            for weight, h, state in ((F1, h1, c1), (F2, h2, c2)):
                f = h @ weight
                f += b_f
                sigmoid(f)
                f *= state
                c += f
            return s[:, d:] * np.tanh(c), c

        return compose

    def leaf_by_hand(self) -> Callable[..., Any]:
        d = self.d
        W, b = stacked(self.W_i, self.W_o, self.W_u), stacked(self.c_i, self.c_o, self.c_u)

        def leaf(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            gates = x @ W
            gates += b
            s = sigmoid(gates[:, : 2 * d])
            c = np.tanh(gates[:, 2 * d :])
            c *= s[:, :d]
            return s[:, d:] * np.tanh(c), c

        return leaf


@dataclass(frozen=True)
class Case:
    """One cell of the paper, and what its tables report of it.

    Args:
        name: in the paper.
        make: its owner, from a collection and a size.
        cell, by_hand: attributes of the owner: the cell, and what gives the function written by hand.
        matrices: which of its arguments are matrices [d, d]; the others are vectors [d].
        arguments: how many.
        kernels, kilobytes, milliseconds: table 2 of the paper: (DyNet's allocation, PQ tree); and table 4.
    """

    name: str
    make: Callable[[eb.ParameterCollection, int], Any]
    cell: str
    by_hand: str
    arguments: int
    kernels: tuple[int, int]
    kilobytes: tuple[float, float]
    milliseconds: float
    matrices: tuple[int, ...] = ()

    def values(self, calls: int, d: int, dtype: str = "float32") -> list[np.ndarray]:
        """Random arguments of a batch of calls."""
        random = np.random.default_rng(0)
        shapes = [(calls, d, d) if at in self.matrices else (calls, d) for at in range(self.arguments)]
        return [random.standard_normal(shape).astype(dtype) for shape in shapes]


CASES = (
    Case("GRUCell", GRUCell, "step", "by_hand", 2, (6, 2), (666, 14), 4.82),
    Case("LSTMCell", LSTMCell, "step", "by_hand", 3, (4, 1), (1054, 16), 12.95),
    Case("MVCell", MVCell, "compose", "by_hand", 4, (2, 2), (260, 260), 1.53, matrices=(1, 3)),
    Case("TreeGRU-Internal", TreeGRU, "compose", "compose_by_hand", 2, (8, 2), (552, 16), 10.43),
    Case("TreeGRU-Leaf", TreeGRU, "leaf", "leaf_by_hand", 1, (4, 2), (268, 8), 2.91),
    Case("TreeLSTM-Internal", TreeLSTM, "compose", "compose_by_hand", 4, (7, 3), (1064, 22), 29.89),
    Case("TreeLSTM-Leaf", TreeLSTM, "leaf", "leaf_by_hand", 1, (3, 1), (396, 6), 3.64),
)
