"""What update rules mean, by Python's own reading of them, and what their kernels do."""

import numpy as np

import edbatch as eb
from edbatch.kernels.language.given import filled
from edbatch.training.rule import Rule, kernel_of

NAMES = {"abs": np.abs, "maximum": np.maximum, "minimum": np.minimum, "sqrt": np.sqrt}

OPTIMIZERS = (eb.SGD, eb.Momentum, eb.Adagrad, eb.RMSProp, eb.Adadelta, eb.Adam, eb.AMSGrad)
RULES = {optimizer.__name__: optimizer.rule for optimizer in OPTIMIZERS}
# Functions that no optimizer uses.
RULES["Others"] = Rule(
    ("low", "size"), ("c",), "low = minimum(low, g); size = abs(+size) + abs(-g); p = p + low / (c + size)"
)


def evaluated(rule, values):
    """All names after an update, from those before; of numbers or arrays."""
    found = dict(values)
    exec(rule.body.strip().replace("; ", "\n"), dict(NAMES), found)
    return found


def expected(rule, p, g, state, rows, constants):
    """What an update makes of p [n, width] and state [n, slots, width], in the dtype of `constants`' arithmetic."""
    p, state = p.copy(), state.copy()
    values = dict(zip(rule.constants, constants, strict=True)) | {"p": p[rows], "g": g}
    values |= {slot: state[rows, number] for number, slot in enumerate(rule.slots)}
    values = evaluated(rule, values)
    p[rows] = values["p"]
    for number, slot in enumerate(rule.slots):
        state[rows, number] = values[slot]
    return p, state


def updated(backend, rule, p, g, state, rows, constants, long=True):
    """The same by the rule's kernel, in the arrays' dtype; `rows`: None, or integers [k]."""
    width = p.shape[1]
    numbers, p, g, state = (
        backend.from_host(np.array(x, p.dtype, order="C"), "C") for x in (constants, p, g, state)
    )  # fmt: skip
    listed = None if rows is None else backend.from_host(np.array(rows, np.int32), "C")
    kernel = kernel_of(rule, np.dtype(p.dtype).name, long)
    address = backend.address
    at = 0 if listed is None else address(listed)
    row = p.itemsize * width
    places = [(address(numbers), 0, 0), (address(g), row, 0), (address(p), row, at)]
    places += [(address(state), row * len(rule.slots), at)] if rule.slots else []
    given = filled(kernel, [width], places, columns=[width * slot for slot in range(len(rule.slots))])
    backend.call(*backend.handles([kernel]), len(g), width, np.append(0, given))
    return np.array(backend.to_host(p)), np.array(backend.to_host(state))


def operands(rule, n, width, rows, dtype, seed=0):
    """Random p, g, state, and constants: between those of steps and those of means."""
    random = np.random.default_rng(seed)
    p, g = random.standard_normal((n, width)), random.standard_normal((len(rows), width))
    state = random.uniform(0.1, 2, (n, len(rule.slots), width))
    constants = random.uniform(0.1, 0.9, len(rule.constants)).tolist()
    return p.astype(dtype), g.astype(dtype), state.astype(dtype), constants
