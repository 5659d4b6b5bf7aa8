"""Small runs for these tests, in a module that workers can import."""

import numpy as np

import edbatch as eb

RNG = np.random.default_rng(0)
SAMPLES = [(RNG.integers(0, 50, n).tolist(), int(n % 3)) for n in RNG.integers(1, 9, 26)]


class Net:
    """A class for a sequence, by the last output of an LSTM; a table that is also used whole; one part for odd ones."""

    def __init__(self, dim=4, dropout=0.0, mean=False):
        self.model = eb.ParameterCollection(seed=0)
        self.dropout, self.mean = dropout, mean
        self.embed = self.model.add_lookup_parameters((50, dim), name="embed")
        self.classes = self.model.add_lookup_parameters((3, dim), name="classes")
        self.lstm = eb.models.LSTM(self.model, dim, dim)
        self.odd = self.model.add_parameters((dim, dim), name="odd")

    def loss(self, words, label):
        h = self.lstm.initial_state().transduce([self.embed[word] for word in words])[-1]
        if words[0] == 7:  # rare: of most mini-batches no sample, of others the samples of one worker
            h = self.odd @ h
        return eb.cross_entropy(self.classes @ eb.dropout(h, self.dropout), label)

    def losses(self, samples):
        found = [self.loss(*sample) for sample in samples]
        return eb.sum(found) * (1 / len(found)) if self.mean else found

    def failing(self, samples):
        return [self.loss(words, {0: 0, 1: 1}[label]) for words, label in samples]

    def dividing(self, samples):
        return 1 / 0

    def interrupted(self, samples):
        for _ in samples:
            raise KeyboardInterrupt

    def exiting(self, samples):
        for _ in samples:
            raise SystemExit(3)

    def programs(self, samples):
        return eb.run([self.program(*sample) for sample in samples])

    async def program(self, words, label):
        h = eb.zeros(4)
        for word in words:
            h = eb.tanh(h + self.embed[word])
            if await h[0] > 0.05:  # what is recorded depends on the parameters
                h = self.odd @ h
        return eb.cross_entropy(self.classes @ h, label)


def started(folder, net=None, losses="losses", **changes):
    net = net or Net()
    given = {"data": SAMPLES, "batch_size": 6, "seed": 3, "save_every": 3, "progress": False, **changes}
    return eb.Run(folder, net.model, eb.Adam(net.model, lr=0.02, clip=1.0), getattr(net, losses), **given)


def difference(a, b):
    """Between the parameters of two runs, and the losses of their curves; the largest."""
    found = [np.abs(x.value() - b.model[name].value()).max() for name, x in a.model.items()]
    assert len(a.curve.losses) == len(b.curve.losses)
    return max([*found, *np.abs(np.subtract(a.curve.losses, b.curve.losses))])
