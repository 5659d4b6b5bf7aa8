"""What a new user waits for: programs on a machine that has compiled nothing, and what is interpreted there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
from edbatch.compiling import compiled

README = (Path(__file__).parent.parent / "README.md").read_text()
FIRST = (
    re.search(r"```python\n(import edbatch as eb\n.*?)```", README, re.DOTALL).group(1).replace("range(3)", "range(1)")
)
UPDATE = """
with eb.Graph() as graph:
    total = eb.sum([eb.cross_entropy(V @ encode(tree), 2) for tree in trees])
total.backward()
eb.Adam(model).update()
print("trained")
"""


@pytest.fixture
def interpreted(monkeypatch):
    """All that may be interpreted is, however long it takes."""
    monkeypatch.setattr(compiled, "PATIENCE", float("inf"))
    monkeypatch.setattr(compiled, "SMALL", float("inf"))
    monkeypatch.setattr(compiled._Disk, "has", lambda *_: False)
    before = {function: (function.__class__, function._pays) for function in small_functions()}
    for function in before:
        function.__class__, function._pays = compiled.Small, False
    yield
    for function, (kind, pays) in before.items():
        function.__class__, function._pays = kind, pays


def small_functions():
    """All that Python can run too; where compiling has paid, they are of another class."""
    return [function for function in compiled.functions if hasattr(function, "_pays")]


def cold(code, folder):
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=300
    )


@pytest.mark.cpu
def test_a_small_program_compiles_little_and_says_so(tmp_path):
    stages = "print(*graph.report().seconds)\n"
    done = cold(FIRST + stages + UPDATE, tmp_path)
    assert done.stdout.startswith("4.91")
    assert done.stdout.endswith("trained\n")
    assert "compilation" in done.stdout
    sizes = [file.stat().st_size for file in tmp_path.glob("edbatch/compiled/*.bin")]
    assert sum(size > 10_000 for size in sizes) <= 4, "Numba's, which take up to seconds each"
    assert len(sizes) <= 20, "kernels of single ops among them, of some hundredths of a second; of 103 that there were"
    again = cold(FIRST + UPDATE, tmp_path)
    assert done.stdout.split()[0] == again.stdout.split()[0]


@pytest.mark.cpu
@pytest.mark.parametrize("first", range(1, 5))
def test_types_come_in_any_numbers_at_a_time(first):
    """Tables of types grow by one or by several; compiled code reads them by address."""
    grown = f"""
import edbatch as eb
for n in ({first}, 1, 2, 3, 1, 7):
    with eb.Graph():
        h = eb.input([0.5] * n)
        for op in (eb.tanh, eb.exp, eb.sigmoid, eb.abs, eb.relu, eb.square)[: n - 1]:
            h = op(h)
        print(*h.value().round(3))
"""
    done = subprocess.run([sys.executable, "-c", grown], capture_output=True, text=True, check=True, timeout=300)
    last = {1: 0.5, 2: 0.462, 3: 1.587, 4: 0.830, 7: 0.689}
    found = [line.split() for line in done.stdout.splitlines()]
    assert found == [[str(last[n])] * n for n in (first, 1, 2, 3, 1, 7)]


def random_tree(rng, depth=0):
    if depth == 6 or rng.random() < 0.2:
        return int(rng.integers(50))
    return random_tree(rng, depth + 1), random_tree(rng, depth + 1)


def results(policy):
    """Of everything that loops over graphs: schedules, plans, values and gradients of cells, lists, views, look-ups."""
    rng = np.random.default_rng(0)
    model = eb.ParameterCollection(seed=0)
    embed = model.add_lookup_parameters((50, 8), name="embed")
    W, U = (model.add_parameters((16, 8), name=name) for name in "WU")

    @eb.cell
    def step(h, g, word: int):
        a, b = eb.split(W @ h + U @ (g + eb.lookup(embed, word)), 2)
        return eb.tanh(a) * eb.sigmoid(b)

    def encode(tree):
        if isinstance(tree, int):
            return eb.lookup(embed, tree)
        left, right = map(encode, tree)
        return step(left, right, 7) if rng.random() < 0.7 else eb.sum([left, right, left * 0.5])

    found = []
    for _ in range(3):
        trees = [random_tree(rng) for _ in range(5)]
        with eb.Graph(policy=policy) as graph:
            roots = [encode(tree) for tree in trees]
            h = eb.zeros(8)
            for word in range(4):
                h = step(h, roots[0], word)
            losses = [eb.cross_entropy(W @ root, 3) for root in [*roots, h]]
            whole = eb.sum(losses) + eb.sum([eb.dot(root[2:5], roots[0][:3]) for root in roots])
        whole.backward()
        found += [whole.value(), W.grad().copy(), U.grad().copy(), *embed.sparse_grad(), *eb.forward(roots)]
        found += [graph.report().batches, graph.report().viewed, graph.report().gathered, graph.report().lower_bound]
        model.zero_grad()
    return found


POLICIES = ["sufficient", "depth", "improved-sort", "agenda", "none"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A policy file with an FSM of the types above."""
    graphs = []
    save = eb.Graph.typed_graph
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eb.Graph, "__exit__", lambda self, *_: (leave(self, *_), graphs.append(save(self)))[0])
        results("sufficient")
    path = tmp_path_factory.mktemp("policies") / "policy.json"
    eb.learn(graphs[:2], encoding="critical").save(path)
    return path


leave = eb.Graph.__exit__


@pytest.mark.parametrize("policy", [*POLICIES, "file"])
def test_what_is_interpreted_is_what_would_be_compiled(policy, machine, interpreted, monkeypatch):
    policy = machine if policy == "file" else policy
    in_python = results(policy)
    for function in small_functions():
        function._pays = True
    for one, other in zip(in_python, results(policy), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


def chain(n, op=eb.tanh):
    with eb.Graph() as graph:
        x = eb.ones(3)
        for _ in range(n):
            x = op(x)
    x.value()
    return graph.report().policy


def test_the_rule_decides_where_no_policy_is_named():
    assert [chain(1000) for _ in range(80)] == ["critical-path"] * 80
    assert chain(30) == "none needed"
