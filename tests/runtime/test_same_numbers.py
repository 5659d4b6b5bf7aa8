"""A graph has the same numbers to the last bit, whatever the process has run before it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
from edbatch.models.workloads import WORKLOADS
from edbatch.runtime import type_table
from edbatch.runtime.type_columns import BoundType

ROOT = Path(__file__).parents[2]
RULES = "depth", "none", "critical-path"

# Prints values and gradients of mini-batches that have the same ops in other orders, run in the order asked for.
MINI_BATCHES = """
import hashlib, sys
import edbatch as eb
model = eb.ParameterCollection(seed=0)
b, W = model.add_parameters(64, name="b", init="normal"), model.add_parameters((64, 64), name="W")
@eb.cell
def cell(x, *, name):
    return eb.sum(getattr(eb, name)(x) * b)
def op(x, *, name):
    return eb.sum(getattr(eb, name)(x))
NAMES = ["tanh", "sin", "sigmoid", "exp"], ["exp", "sigmoid", "sin", "tanh"]
for at in map(int, sys.argv[1]):
    for policy in sys.argv[2].split():
        model.zero_grad()
        with eb.Graph(policy=policy):
            x = eb.tanh(W @ (b * 2))
            loss = eb.sum([way(x, name=name) for way in (op, cell) for name in NAMES[at]])
        loss.backward()
        bits = [loss.value().tobytes(), b.grad().tobytes(), W.grad().tobytes()]
        print(at, policy, hashlib.sha1(b"".join(bits)).hexdigest())
"""


def printed(order):
    command = [sys.executable, "-c", MINI_BATCHES, order, " ".join(RULES)]
    return sorted(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.splitlines())


@pytest.mark.cpu  # another process
def test_mini_batches_in_another_order():
    found = printed("01")
    assert len(found) == 2 * len(RULES)
    assert printed("10") == found


def program(name):
    """A function of a policy: the graph of a mini-batch of two networks that learn together, values and gradients."""
    workload = WORKLOADS[name]
    samples, sizes, _ = workload.number(workload.generate(3, 1))
    model = eb.ParameterCollection(seed=3)
    networks = [workload.network(model.sub(part), *sizes, 6) for part in "ab"]

    def bits(policy):
        model.zero_grad()
        with eb.Graph(policy=policy) as graph:
            found = [p for sample in samples for network in networks for p in workload.probabilities(network, sample)]
            loss = eb.sum([eb.log(p[0]) for p in found])
        seen = graph.typed_graph()
        loss.backward()
        gradients = [parameter.grad().tobytes() for parameter in model]
        return [seen.names, seen.types.tolist(), seen.operands.tolist(), loss.value().tobytes(), *gradients]

    return bits


@pytest.mark.parametrize("cells", [True, False])
@pytest.mark.parametrize("name", ["tree-lstm", "tagger-characters", "lattice-lstm", "encoder-decoder"])
def test_types_that_were_seen_in_another_order(monkeypatch, name, cells):
    bits = program(name)
    with eb.options(cells=cells):
        for policy in RULES:
            monkeypatch.setattr(type_table, "_shared", {})
            expected = bits(policy)
            (table,) = type_table._shared.values()
            types = np.array([bound.type.id for bound in table.bound if isinstance(bound, BoundType)])
            monkeypatch.setattr(type_table, "_shared", {})
            other = type_table.shared_table(table.device)
            for at in np.random.default_rng(0).permutation(len(types)):
                other.number(types[at : at + 1])
            assert bits(policy) == expected, policy
