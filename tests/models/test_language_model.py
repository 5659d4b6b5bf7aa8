"""The language model against its equations in PyTorch; its generation; dropout."""

import pytest

import edbatch as eb
from edbatch.models import LanguageModel, generation
from tests.models.against_torch import check, check_policies, check_training, new_model

SENTENCES = [[5, 6, 7, 3], [4], [], [3, 3, 8]]
DIM = 3


def test_values_and_gradients():
    model = new_model()
    network = LanguageModel(model, words=9, dim=DIM, layers=2)

    def build():
        return [network.loss(words) for words in SENTENCES]

    def wanted(torch, p):
        def layer(name, xs):
            h = c = torch.zeros(DIM, dtype=torch.float64)
            found = []
            for x in xs:
                i, f, o, u = (p[f"{name}.W"] @ x + p[f"{name}.U"] @ h + p[f"{name}.b"]).split(DIM)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
                h = torch.sigmoid(o) * torch.tanh(c)
                found.append(h)
            return found

        losses = []
        for words in SENTENCES:
            hs = layer("layer1", layer("layer0", [p["embed"][word] for word in (1, *words)]))
            scores = torch.stack([p["W_out"] @ h + p["b_out"] for h in hs])
            target = torch.tensor([*words, 2])
            losses.append(torch.nn.functional.cross_entropy(scores, target, reduction="sum"))
        return losses

    report = check(model, build, wanted)
    assert report.batches < report.nodes / 2
    check_policies(build)


def test_it_learns_its_sentences_and_says_one():
    model = new_model()
    network = LanguageModel(model, words=9, dim=12)
    check_training(model, lambda: eb.sum([network.loss([5, 6, 7, 3]) for _ in range(2)]), steps=40, part=0.1)
    with eb.Graph(dtype="float64"):
        (words,) = eb.run([generation.greedy(network, [], longest=6)])
    assert list(words)[:4] == [5, 6, 7, 3]


def test_dropout_only_in_training():
    network = LanguageModel(new_model(), words=9, dim=20, dropout=0.5)
    with eb.Graph(dtype="float64"):
        first, second = (network.loss([5, 6]).value() for _ in range(2))
    with eb.options(training=False), eb.Graph(dtype="float64"):
        third, fourth = (network.loss([5, 6]).value() for _ in range(2))
    assert first != second
    assert third == fourth
    with pytest.raises(eb.EdBatchError, match=r"LanguageModel: dropout: expected a rate in \[0, 1\)"):
        LanguageModel(new_model(), words=9, dim=2, dropout=1.0)
