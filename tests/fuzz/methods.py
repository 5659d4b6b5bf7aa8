"""Calls of ops as methods of expressions."""

import re

#: Ops that are methods of expressions, too, and what these are called.
METHODS = {
    name: [name] for name in (
        "sum", "mean", "std", "max", "min", "logsumexp", "norm", "softmax", "log_softmax", "abs", "exp", "log", "sqrt",
        "square", "sin", "cos", "erf", "tanh", "sigmoid", "relu", "dot", "matmul", "squeeze", "unsqueeze", "swapaxes",
        "flip", "reshape",
    )
} | {"clip": ["clip", "clamp"], "power": ["pow"], "stop_gradient": ["detach"]}  # fmt: skip


def as_method(random, text):
    """The same call as a method, if there is one."""
    found = re.fullmatch(r"eb\.(\w+)\(([a-z]\d+)(?:, (.*))?\)", text)
    if found is None or found[1] not in METHODS:
        return text
    return f"{found[2]}.{random.choice(METHODS[found[1]])}({found[3] or ''})"
