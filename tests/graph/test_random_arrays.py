"""Random programs over arrays of expressions, and the same over Python lists of single ones."""

import numpy as np
import pytest

import edbatch as eb
from tests.graph.array_uses import POLICIES, Model

SIZE, STEPS = 8, 25


class OfArrays:
    """What a program does with arrays."""

    given = staticmethod(eb.array)
    joined = staticmethod(lambda parts: eb.array(parts))
    flipped = staticmethod(lambda xs: xs[:, ::-1])
    chosen = staticmethod(lambda xs, entries: xs[entries])
    one = staticmethod(lambda xs, at: xs[at])
    total = staticmethod(eb.sum)
    values = staticmethod(lambda xs: xs.value())

    @staticmethod
    def mapped(function, *operands):
        return function(*operands)


class OfLists:
    """The same with lists: what is no list is the same for all entries, integers are one for each."""

    given = staticmethod(lambda rows: [eb.input(row) for row in rows])
    joined = staticmethod(lambda parts: [x for part in parts for x in (part if isinstance(part, list) else [part])])
    flipped = staticmethod(lambda xs: [x[::-1] for x in xs])
    one = staticmethod(lambda xs, at: xs[at])
    total = staticmethod(eb.sum)
    values = staticmethod(lambda xs: np.array(eb.forward(xs)).reshape(len(xs), SIZE))

    @staticmethod
    def chosen(xs, entries):
        if isinstance(entries, slice):
            return xs[entries]
        return [xs[at] for at in np.arange(len(xs))[entries]]

    @staticmethod
    def mapped(function, *operands):
        n = next(len(x) for x in operands if isinstance(x, list))
        columns = [x if isinstance(x, list) else x.tolist() if isinstance(x, np.ndarray) else [x] * n for x in operands]
        return [function(*row) for row in zip(*columns, strict=True)]


class Program:
    """A random program; it draws the same whatever its arrays are made of."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.model = Model()
        model = self.model

        @eb.cell
        def mixed(x, y, k: int):
            h = eb.tanh(model.W @ x + y)
            return h, eb.pick(model.W, k) * h + eb.stop_gradient(y)

        self.mixed = mixed

    def same_length(self, pool, n):
        alike = [xs for xs in pool if len(xs) == n]
        return alike[self.rng.integers(len(alike))]

    def run(self, way):
        """All that it made, and its inputs."""
        rng, model = self.rng, self.model
        inputs = [way.given(rng.normal(size=(n, SIZE))) for n in (5, 5, 1, 12)]
        pool, singles = list(inputs), [eb.input(rng.normal(size=SIZE)), eb.lookup(model.table, 3)]
        first_single = singles[0]
        for _ in range(STEPS):
            xs = pool[rng.integers(len(pool))]
            n, one = len(xs), singles[rng.integers(len(singles))]
            ys, ks = self.same_length(pool, n), rng.integers(0, SIZE, n)
            match rng.integers(12):
                case 0:
                    new = way.mapped(lambda x, y: eb.tanh(x) * y - 0.5, xs, ys)
                case 1:
                    new = way.mapped(lambda x, y: model.W @ x + y, xs, one)
                case 2:
                    new = way.chosen(xs, rng.integers(0, n, rng.integers(1, 9)))
                case 3:
                    new = way.chosen(xs, rng.random(n) < 0.6)
                case 4:
                    new = way.chosen(xs, slice(None, None, -2))
                case 5:
                    new = way.joined([xs, one, ys])
                case 6:
                    new = way.flipped(xs)
                case 7:
                    new, pair = self.of_cell(way, xs, ys, ks)
                    pool.append(pair)
                case 8:
                    new, _ = self.of_cell(way, xs, one, ks)
                case 9:
                    singles.append(way.one(xs, int(rng.integers(n))) + eb.tanh(way.total(ys)))
                    continue
                case 10:
                    way.values(xs)
                    continue
                case 11:
                    new = way.mapped(lambda x, y, z: eb.sum([x, y, z]) * eb.softmax(x), xs, one, ys)
            if len(new):
                pool.append(new)
        return [*pool, *singles], [*inputs, first_single]

    def of_cell(self, way, xs, ys, ks):
        found = way.mapped(self.mixed, xs, ys, ks)
        return found if isinstance(found, tuple) else tuple(map(list, zip(*found, strict=True)))


def outcome(seed, way, policy, **options):
    program = Program(seed)
    with eb.options(**options), eb.Graph(policy, "float64") as graph:
        made, inputs = program.run(way)
        loss = eb.sum([eb.sum(x if x.__class__ is eb.Expression else eb.tanh(eb.sum(x))) for x in made])
        values = [np.array(x.value() if x.__class__ is eb.Expression else way.values(x)) for x in made]
    loss.backward()
    gradients = [np.array([x.gradient() for x in xs] if isinstance(xs, list) else xs.gradient()) for xs in inputs]
    return [*values, *gradients, *program.model.gradients().values()], graph.report().nodes


@pytest.mark.parametrize("seed", range(18))
def test_arrays_compute_what_lists_do(seed):
    policy, options = POLICIES[seed % len(POLICIES)], [{}, {"cells": False}, {"recompute": True}][seed // 6]
    found, nodes = outcome(seed, OfArrays, policy, **options)
    expected, expected_nodes = outcome(seed, OfLists, policy, **options)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    assert nodes == expected_nodes
