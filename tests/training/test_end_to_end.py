"""From graphs to trained models: the same losses as PyTorch's, and runs that go on exactly where they stopped."""

import pytest

import edbatch as eb
from edbatch.models import LSTM

WORDS, DIM, CLASSES = 11, 5, 3
BATCHES = [
    [([1, 4, 2], 0), ([3], 1)],
    [([5, 5, 6, 7], 2), ([1, 2], 0), ([8, 3, 1], 1)],
    [([9, 10], 2), ([4, 4], 1)],
]


class Classifier:
    """A class from the last state of an LSTM over words."""

    def __init__(self, seed=0, dtype="float32"):
        self.model = eb.ParameterCollection(seed=seed, dtype=dtype)
        self.embed = self.model.add_lookup_parameters((WORDS, DIM), name="embed")
        self.lstm = LSTM(self.model, DIM, DIM)
        self.W = self.model.add_parameters((CLASSES, DIM), name="W")
        self.b = self.model.add_parameters(CLASSES, name="b")

    def step(self, trainer, batch):
        """One update; returns the loss before it."""
        with eb.Graph(policy="sufficient", dtype=self.model.dtype):
            losses = []
            for words, label in batch:
                hs = self.lstm.initial_state().transduce([self.embed[word] for word in words])
                losses.append(eb.cross_entropy(eb.affine(self.W, hs[-1], self.b), label))
            loss = eb.sum(losses)
        loss.backward()
        trainer.update()
        return float(loss.value())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda m: eb.SGD(m, lr=0.1, clip=0.5), lambda optim, ps: optim.SGD(ps, lr=0.1)),
        (lambda m: eb.Adam(m, lr=0.01, clip=0.5), lambda optim, ps: optim.Adam(ps, lr=0.01)),
    ],
)
def test_the_losses_are_those_of_pytorch(ours, theirs):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = Classifier(dtype="float64")
    modules = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(WORDS, DIM),
            "lstm": torch.nn.LSTM(DIM, DIM),
            "head": torch.nn.Linear(DIM, CLASSES),
        }
    ).double()
    for name, target in (("embed", net.embed), ("lstm", net.lstm), ("head", (net.W, net.b))):
        eb.from_torch(target, modules.state_dict(), prefix=f"{name}.")
    # PyTorch's second bias would learn as well, and twice as fast as ours.
    modules["lstm"].bias_hh_l0.data.zero_()
    modules["lstm"].bias_hh_l0.requires_grad_(False)
    net.lstm.b.set_value(net.lstm.b.value() * 0)
    modules["lstm"].bias_ih_l0.data.zero_()
    # Every word in every mini-batch: a dense Adam moves the rows of others too.
    batches = [[*batch, (list(range(WORDS)), 0)] for batch in BATCHES]

    trainer = ours(net.model)
    parameters = [p for p in modules.parameters() if p.requires_grad]
    peer = theirs(torch.optim, parameters)
    for batch in batches * 3:
        loss = 0.0
        for words, label in batch:
            hs, _ = modules["lstm"](modules["embed"](torch.tensor(words)))
            loss = loss + torch.nn.functional.cross_entropy(modules["head"](hs[-1]), torch.tensor(label))
        peer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        peer.step()
        assert net.step(trainer, batch) == pytest.approx(loss.item(), rel=1e-9)


@pytest.mark.parametrize(
    ("optimizer", "lr"),
    [
        (eb.SGD, 0.3),
        (eb.Momentum, 0.03),
        (eb.Adagrad, 0.1),
        (eb.RMSProp, 0.03),
        (eb.Adadelta, 5.0),
        (eb.Adam, 0.03),
        (eb.AdamW, 0.03),
        (eb.AMSGrad, 0.03),
    ],
)
def test_models_learn(optimizer, lr):
    net = Classifier()
    trainer = optimizer(net.model, lr=lr, clip=5.0)
    first = sum(net.step(trainer, batch) for batch in BATCHES)
    for _ in range(40):
        last = sum(net.step(trainer, batch) for batch in BATCHES)
    assert last < 0.5 * first
