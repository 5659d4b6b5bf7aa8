"""Lattice LSTM and GRU against their equations in float64 NumPy, one lattice at a time."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.lattices import Lattice, read_lattices, sizes
from edbatch.data.random_lattices import random_lattices
from edbatch.models import LatticeGRU, LatticeLSTM
from tests.models.equations import cross_entropy, every_way, forward, gru, lstm, randomized, softmax

DIM = 4
NETWORKS = {LatticeLSTM: (lstm, 2), LatticeGRU: (gru, 1)}


def oracle(p, network, arcs, average=False):
    """Scores of every node but the first."""
    step, n = NETWORKS[network]
    states = [np.zeros((n, DIM))]
    for node in range(1, len(arcs)):
        state = np.zeros((n, DIM))
        for source, id in arcs[node]:
            kind = "character" if source == node - 1 else "word"
            state = state + np.array(step(p, kind, p[f"embed_{kind}"][id], *states[source]))
        states.append(state / len(arcs[node]) if average else state)
    return [p["W_out"] @ state[0] + p["b_out"] for state in states[1:]]


def check(network, lattices, way, dtype="float64", average=False):
    model = eb.ParameterCollection(dtype=dtype)
    made = network(model, *sizes(lattices), DIM, average=average)
    p = randomized(model, 0.1)  # sums over arcs grow without bound where gates are wide open
    got, report = forward(way, lambda: [made.probabilities(h) for x in lattices for h in made.hidden(x.arcs)], dtype)
    scores = [oracle(p, network, lattice.arcs, average) for lattice in lattices]
    exact = {"rtol": 1e-9} if dtype == "float64" else {"atol": 1e-5}
    np.testing.assert_allclose(got, [softmax(row) for rows in scores for row in rows], **exact)
    losses, _ = forward(way, lambda: [made.loss(lattice.arcs, lattice.tags) for lattice in lattices], dtype)
    want = [sum(map(cross_entropy, rows, x.tags[1:])) for rows, x in zip(scores, lattices, strict=True)]
    np.testing.assert_allclose(losses, want, rtol=1e-9 if dtype == "float64" else 1e-4)
    return report


@every_way
@pytest.mark.parametrize("network", NETWORKS)
def test_made_up_lattices(network, way):
    check(network, random_lattices(6, seed=3), way)


@pytest.mark.parametrize("network", NETWORKS)
def test_averages(network):
    check(network, random_lattices(6, seed=4), "batched", average=True)


def test_averages_of_a_gru_stay_below_one():
    lattices = random_lattices(4, seed=4)
    made = LatticeGRU(model := eb.ParameterCollection(), *sizes(lattices), DIM, average=True)
    randomized(model, 3.0)
    hidden, _ = forward("batched", lambda: [h for x in lattices for h in made.hidden(x.arcs)], "float32")
    assert 0.9 < np.abs(hidden).max() <= 1


@pytest.mark.parametrize("network", NETWORKS)
def test_real_lattices(data_folder, network):
    lattices = sorted(read_lattices(data_folder / "lattice" / "dev.txt"), key=len)[:16]
    check(network, lattices, "batched")
    check(network, lattices, "batched", dtype="float32")


@pytest.mark.parametrize("dim", [8, 64])
@pytest.mark.parametrize("network", NETWORKS)
def test_the_defaults_train(network, dim):
    """Long lattices with many words, as real ones are; with sums, gradients are infinite after 1 to 30 updates."""
    lattices = [lattice_of_all_words(60, seed) for seed in range(4)]
    made = network(model := eb.ParameterCollection(seed=0), *sizes(lattices), dim)
    trainer = eb.Adam(model, lr=1e-2)  # raises where a gradient is not finite
    losses = []
    for _ in range(60):
        with eb.Graph(policy="sufficient"):
            loss = eb.sum([made.loss(lattice.arcs, lattice.tags) for lattice in lattices])
        losses.append(float(loss.value()))
        loss.backward()
        trainer.update()
    assert max(losses) <= 1.5 * losses[0]
    assert losses[-1] < 0.5 * losses[0]


def lattice_of_all_words(nodes, seed):
    """Every node ends a word from each of five nodes, and a character, of which the tag is the rest by three."""
    random = np.random.default_rng(seed)
    arcs = [[(source, int(random.integers(1, 9))) for source in range(max(0, node - 6), node)] for node in range(nodes)]
    return Lattice([0, *(ends[-1][1] % 3 for ends in arcs[1:])], arcs)


def test_sums_over_any_number_of_arcs_are_one_batch():
    made = LatticeGRU(eb.ParameterCollection(), 9, 9, 2, DIM)
    chain = [(), ((0, 1),), ((1, 1),), ((2, 1),)]
    ways = [[*chain, ((3, 1), *((source, 1) for source in range(words)))] for words in (1, 2, 3)]
    _, report = forward("batched", lambda: [made.hidden(arcs)[-1] for arcs in ways], "float32")
    single, _ = forward("batched", lambda: [made.hidden(ways[0])[-1]], "float32"), None
    assert report.batches == single[1].batches == report.lower_bound


def test_bad_lattices():
    made = LatticeLSTM(eb.ParameterCollection(), 9, 9, 2, DIM)
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"LatticeLSTM.hidden: expected an arc to node 2, got none"):
        made.hidden([(), ((0, 1),), ()])
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"read_word, argument word: index 12"):
        made.hidden([(), ((0, 1),), ((0, 12),)])
