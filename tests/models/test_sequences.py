"""Networks over sentences and lattices against their equations in PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.lattices import Lattice, random_lattices, sizes
from edbatch.models import (
    AttentionEncoderDecoder,
    BiLSTMTagger,
    EncoderDecoder,
    LanguageModel,
    LatticeGRU,
    LatticeLSTM,
)
from tests.models.against_torch import check, cross_entropies, gru, lstm, new_model, outputs

DIM = 4
SENTENCES = [[5, 6, 7, 3], [4], [], [3, 3, 8]]
PAIRS = [([3, 4, 5], [4, 8]), ([1], [5, 1, 3]), ([2, 2, 7, 8, 1], [])]


def test_language_model():
    model = new_model()
    network = LanguageModel(model, words=9, dim=DIM, layers=2)

    def wanted(torch, p):
        losses = []
        for words in SENTENCES:
            xs = outputs(torch, p, "layer0", [p["embed"][word] for word in (1, *words)])
            losses.append(cross_entropies(torch, p, outputs(torch, p, "layer1", xs), (*words, 2)))
        return losses

    report = check(model, lambda: [network.loss(words) for words in SENTENCES], wanted)
    assert report.batches < report.nodes / 2


def test_dropout_only_in_training():
    network = LanguageModel(new_model(), words=9, dim=20, dropout=0.5)
    with eb.Graph(dtype="float64"):
        first, second = (network.loss([5, 6]).value() for _ in range(2))
    with eb.options(training=False), eb.Graph(dtype="float64"):
        third, fourth = (network.loss([5, 6]).value() for _ in range(2))
    assert first != second
    assert third == fourth


def test_encoder_decoder():
    model = new_model()
    network = EncoderDecoder(model, 9, 10, DIM, start=6, end=7)
    pairs = [*PAIRS, ([], [3])]

    def wanted(torch, p):
        losses = []
        for source, target in pairs:
            state = [torch.zeros(DIM, dtype=torch.float64)] * 2
            for word in source:
                state = lstm(torch, p, "encoder", p["embed_source"][word], *state)
            hs = outputs(torch, p, "decoder", [p["embed_target"][word] for word in (6, *target)], state=state)
            losses.append(cross_entropies(torch, p, hs, (*target, 7)))
        return losses

    check(model, lambda: [network.loss(*pair) for pair in pairs], wanted)


def test_attention():
    model = new_model()
    network = AttentionEncoderDecoder(model, 9, 10, DIM)

    def wanted(torch, p):
        losses = []
        for source, target in PAIRS:
            xs = [p["embed_source"][word] for word in source]
            right = outputs(torch, p, "encoder.forward", xs)
            left = outputs(torch, p, "encoder.backward", xs[::-1])[::-1]
            memory = torch.stack([torch.cat(both) for both in zip(right, left, strict=True)])
            h, c, fed = [torch.zeros(DIM, dtype=torch.float64)] * 3
            hidden = []
            for word in (1, *target):
                h, c = lstm(torch, p, "decoder", torch.cat([p["embed_target"][word], fed]), h, c)
                context = torch.softmax(memory @ (p["W_memory"] @ h), 0) @ memory
                fed = torch.tanh(p["W_attended"] @ torch.cat([context, h]))
                hidden.append(fed)
            losses.append(cross_entropies(torch, p, hidden, (*target, 2)))
        return losses

    check(model, lambda: [network.loss(*pair) for pair in PAIRS], wanted, scale=0.8)
    with eb.Graph():
        assert AttentionEncoderDecoder(eb.ParameterCollection(), 3, 3, 5).loss([1], [2]).shape == ()


def test_sources_of_all_lengths_take_the_batches_of_one_length():
    network = AttentionEncoderDecoder(eb.ParameterCollection(), 9, 10, DIM)

    def batches(sources):
        with eb.Graph(policy="sufficient") as graph:
            eb.forward([network.loss(source, [4, 8, 1]) for source in sources])
        return graph.report().batches

    assert batches([[1] * n for n in (1, 2, 3, 4, 5)]) <= batches([[1] * 5] * 5) + 1


@pytest.mark.parametrize("characters", [0, 6])
def test_tagger(characters):
    model = new_model()
    tagger = BiLSTMTagger(model, words=9, tags=3, dim=5, characters=characters)
    spelled = [[4, 2, 5], [1]] if characters else [3, 3]
    sentences = [([3, spelled[0], 8, 1], [0, 1, 2, 2]), ([spelled[1]], [1]), ([2, 2], [0, 2])]

    def wanted(torch, p):
        def word(number):
            if not isinstance(number, list):
                return p["embed"][number]
            letters = [p["characters"][letter] for letter in number]
            ends = (outputs(torch, p, "spell_right", letters), outputs(torch, p, "spell_left", letters[::-1]))
            return torch.cat([end[-1] for end in ends])

        losses = []
        for words, tags in sentences:
            xs = [word(number) for number in words]
            right = outputs(torch, p, "right1", outputs(torch, p, "right0", xs))
            left = outputs(torch, p, "left1", outputs(torch, p, "left0", xs[::-1]))[::-1]
            both = [torch.cat(pair) for pair in zip(right, left, strict=True)]
            hidden = [torch.tanh(p["W_hidden"] @ x + p["b_hidden"]) for x in both]
            losses.append(cross_entropies(torch, p, hidden, tags))
        return losses

    report = check(model, lambda: [tagger.loss(*sentence) for sentence in sentences], wanted)
    if not characters:
        assert report.batches == report.lower_bound


NETWORKS = {LatticeLSTM: lstm, LatticeGRU: gru}


def check_lattices(kind, lattices):
    model = new_model()
    network = kind(model, *sizes(lattices), DIM)

    def wanted(torch, p):
        losses, n = [], 2 if kind is LatticeLSTM else 1
        for lattice in lattices:
            states = [torch.zeros((n, DIM), dtype=torch.float64)]
            for node, arcs in enumerate(lattice.arcs[1:], start=1):
                found = []
                for source, id in arcs:
                    name = "character" if source == node - 1 else "word"
                    step = NETWORKS[kind](torch, p, name, p[f"embed_{name}"][id], *states[source])
                    found.append(torch.stack(list(step)))
                states.append(sum(found) / len(found))
            losses.append(cross_entropies(torch, p, [state[0] for state in states[1:]], lattice.tags[1:]))
        return losses

    check(model, lambda: [network.loss(lattice.arcs, lattice.tags) for lattice in lattices], wanted, scale=0.1)


@pytest.mark.parametrize("kind", NETWORKS)
def test_lattices(kind):
    check_lattices(kind, sorted(random_lattices(9, seed=3), key=len)[:4])


def lattice_of_all_words(nodes, seed):
    """Every node ends a word from each of five nodes, and a character, of which the tag is the rest by three."""
    random = np.random.default_rng(seed)
    arcs = [[(source, int(random.integers(1, 9))) for source in range(max(0, node - 6), node)] for node in range(nodes)]
    return Lattice([0, *(ends[-1][1] % 3 for ends in arcs[1:])], arcs)


def test_the_defaults_of_lattices_train():
    """Long lattices with many words, as real ones are; with sums, gradients are infinite after 1 to 30 updates."""
    lattices = [lattice_of_all_words(60, seed) for seed in range(4)]
    made = LatticeLSTM(model := eb.ParameterCollection(seed=0), *sizes(lattices), 64)
    trainer = eb.Adam(model, lr=1e-2)  # raises where a gradient is not finite
    losses = []
    for _ in range(40):
        with eb.Graph(policy="sufficient"):
            loss = eb.sum([made.loss(lattice.arcs, lattice.tags) for lattice in lattices])
        losses.append(float(loss.value()))
        loss.backward()
        trainer.update()
    assert max(losses) <= 1.5 * losses[0]
    assert losses[-1] < 0.5 * losses[0]


def test_means_of_any_number_of_arcs_are_one_batch():
    made = LatticeGRU(eb.ParameterCollection(), 9, 9, 2, DIM)
    chain = [(), ((0, 1),), ((1, 1),), ((2, 1),)]
    ways = [[*chain, ((3, 1), *((source, 1) for source in range(words)))] for words in (1, 2, 3)]
    batches = []
    for some in (ways, ways[:1]):
        with eb.Graph(policy="sufficient") as graph:
            eb.forward([made.hidden(arcs)[-1] for arcs in some])
        batches.append(graph.report().batches)
    assert batches[0] == batches[1] == graph.report().lower_bound


def test_bad_lattices():
    made = LatticeLSTM(eb.ParameterCollection(), 9, 9, 2, DIM)
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="expected at least one expression"):
        made.hidden([(), ((0, 1),), ()])
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"read_word, argument word: index 12"):
        made.hidden([(), ((0, 1),), ((0, 12),)])
