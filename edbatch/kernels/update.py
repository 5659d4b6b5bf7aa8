"""Update rules on the CPU: one loop over rows and their entries, compiled by Numba."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from edbatch.kernels.generated import module_of
from edbatch.kernels.rule import Language, Rule, source_in

NUMBA = Language(
    kernel='''"""Written by EdBatch; may be deleted at any time."""
from numba import uint64
from edbatch.compiled import compiled
from edbatch.kernels.scalars import maximum, minimum, sqrt


@compiled(error_model="numpy", fastmath={"contract"})
def update(p, g, state, rows{constants}):
    width = p.shape[1]
    for i in range(uint64(len(rows))):
        at = uint64(rows[i])
        for j in range(uint64(width)):
{body}
''',
    passed=", c{0}",
    constant="c{0}",
    parameter="p[at, j]",
    gradient="g[i, j]",
    slot="state[at, {0}, j]",
    value="v{0} = {1}",
    store="{0} = v{1}",
    indent=12,
    expression=str,
)


FIRST_ROW = np.zeros(1, np.int64)


def update(
    rule: Rule, p: np.ndarray, g: np.ndarray, state: np.ndarray, rows: np.ndarray | None, constants: Sequence[float]
) -> None:
    """Change rows of p and of the state by their gradients, in place.

    All slots are one array: what the compiler cannot see to lie apart, it checks at run time, and with many arrays it
    uses no vector instructions.

    Args:
        rule: what is computed for each entry; always the same object, for it is what the compiled loop is found by.
        p: [n, width], float32 or float64, as all that follow contiguous.
        g: [k, width], of the same dtype.
        state: [n, slots, width], of the same dtype.
        rows: which rows of p and state the gradients are of, int64 [k] on the host, each once; None: row i is i.
        constants: one for each of the rule's; rounded to the dtype.

    Example:
        >>> p, g = np.ones((3, 2), np.float32), np.ones((1, 2), np.float32)
        >>> update(Rule((), ("lr",), "p = p - lr * g"), p, g, np.empty((3, 0, 2), np.float32), np.array([1]), [0.25])
        >>> p[:, 0]
        array([1.  , 0.75, 1.  ], dtype=float32)
    """
    if rows is None:
        rows = FIRST_ROW if len(g) == 1 else np.arange(len(g))
    loop_of(rule)(p, g, state, rows, *map(p.dtype.type, constants))


@cache
def loop_of(rule: Rule) -> Any:
    """The compiled loop `update(p, g, state, rows, *constants)`; kept on disk for later processes."""
    return module_of(source_in(NUMBA, rule)).update
