"""Python without assertions and docstrings (`-OO`) computes the same: nothing that is needed is done in them."""

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import edbatch as eb

model = eb.ParameterCollection(seed=0)
W = model.add_parameters((4, 4), name="W")
table = model.add_lookup_parameters((5, 4), name="table")
trainer = eb.Adam(model)

@eb.cell
def step(h, x, k: int):
    y = eb.layer_norm(eb.tanh(W @ h + x) * eb.softmax(x), x, x)
    return y + table[k], eb.cross_entropy(y, k)

for policy in ("sufficient", "none"):
    with eb.Graph(policy=policy) as graph:
        losses = []
        for length in (1, 2, 3):
            h = eb.ones(4)
            for k in range(length):
                h, loss = step(h, table[k], k)
                losses.append(loss)
        total = eb.sum(losses) + eb.sum(eb.mean([h, table[1]]))
    total.backward()
    trainer.update()
    print(float(total), float(np.abs(W.value()).sum()), graph.report().batches)
"""


def run(*arguments):
    """What a new process prints."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300)


@pytest.mark.cpu  # other processes
def test_the_same_without_assertions_and_docstrings():
    want, got = run("-c", PROGRAM), run("-OO", "-c", PROGRAM)
    assert want.returncode == 0, want.stderr
    assert (got.returncode, got.stdout) == (0, want.stdout), got.stderr
