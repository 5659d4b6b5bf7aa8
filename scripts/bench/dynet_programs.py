"""The programs that `scripts.bench.dynet` times; real DyNet runs this file too, with a Python of its own (3.8).

python dynet_programs.py MODULE [--new-words] [--dynet-autobatch 1 ...]   each line of its input is [program] as JSON,
each answer [ms per sample by the clock, of the thread]; with new words, those of all samples are others in each round
"""

import json
import random
import sys
import time


def sentences(count, length=20, words=1000, seed=1):
    rng = random.Random(seed)
    return [[rng.randrange(words) for _ in range(rng.randrange(length // 2, length * 3 // 2))] for _ in range(count)]


def language_model(dy, model, hidden=128):
    E, W, b = (
        model.add_lookup_parameters((1000, hidden)),
        model.add_parameters((1000, hidden)),
        model.add_parameters(1000),
    )
    lstm = dy.LSTMBuilder(1, hidden, hidden, model)

    def loss(sample):
        state, losses = lstm.initial_state(), []
        for word, following in zip(sample, sample[1:] + [0]):
            state = state.add_input(E[word])
            losses.append(dy.pickneglogsoftmax(dy.affine_transform([b, W, state.output()]), following))
        return dy.esum(losses)

    return loss, sentences(16)


def tagger(dy, model, hidden=128):
    E, W, b = model.add_lookup_parameters((1000, hidden)), model.add_parameters((20, hidden)), model.add_parameters(20)
    rnn = dy.BiRNNBuilder(1, hidden, hidden, model, dy.LSTMBuilder)

    def loss(sample):
        hs = rnn.transduce([E[word] for word in sample])
        return dy.esum([dy.pickneglogsoftmax(W * h + b, word % 20) for h, word in zip(hs, sample)])

    return loss, sentences(16)


def tree_lstm(dy, model, hidden=128):
    E, W = model.add_lookup_parameters((1000, hidden)), model.add_parameters((5, hidden))
    Us = [[model.add_parameters((hidden, hidden)) for _ in range(2)] for _ in "iouff"]
    bs = [model.add_parameters(hidden) for _ in "iouff"]

    def node(words):
        if len(words) == 1:
            return dy.tanh(E[words[0]]), dy.tanh(E[words[0]])
        middle = 1 + words[0] % (len(words) - 1)
        (h1, c1), (h2, c2) = node(words[:middle]), node(words[middle:])
        i, o, u, f1, f2 = (dy.affine_transform([b, U[0], h1, U[1], h2]) for U, b in zip(Us, bs))
        c = dy.cmult(dy.logistic(i), dy.tanh(u)) + dy.cmult(dy.logistic(f1), c1) + dy.cmult(dy.logistic(f2), c2)
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    return lambda sample: dy.pickneglogsoftmax(W * node(sample)[0], sample[0] % 5), sentences(16)


def transition_parser(dy, model, hidden=128):
    E, W, V = (
        model.add_lookup_parameters((1000, hidden)),
        model.add_parameters((hidden, 3 * hidden)),
        model.add_parameters((3, hidden)),
    )
    b, C = model.add_parameters(hidden), model.add_parameters((hidden, 2 * hidden))

    def loss(sample):
        buffer, stack, losses = [E[word] for word in sample][::-1], [], []
        empty = dy.zeros(hidden)
        while buffer or len(stack) > 1:
            seen = ([empty, empty] + stack)[-2:] + [buffer[-1] if buffer else empty]
            scores = V * dy.rectify(W * dy.concatenate(seen) + b)
            action = 0 if len(stack) < 2 or (buffer and len(buffer) % 2) else 1
            if action:
                right, left = stack.pop(), stack.pop()
                stack.append(dy.tanh(C * dy.concatenate([left, right])))
            else:
                stack.append(buffer.pop())
            losses.append(dy.hinge(scores, action))
        return dy.esum(losses)

    return loss, sentences(16)


def batched_language_model(dy, model, hidden=128, batch=32):
    E, W, b = (
        model.add_lookup_parameters((1000, hidden)),
        model.add_parameters((1000, hidden)),
        model.add_parameters(1000),
    )
    lstm = dy.LSTMBuilder(1, hidden, hidden, model)
    rng = random.Random(2)

    def loss(sample):
        state, losses = lstm.initial_state(), []
        for now, following in zip(sample, sample[1:]):
            state = state.add_input(dy.lookup_batch(E, now))
            losses.append(dy.pickneglogsoftmax_batch(dy.affine_transform([b, W, state.output()]), following))
        return dy.sum_batches(dy.esum(losses)) / batch

    return loss, [[[rng.randrange(1000) for _ in range(batch)] for _ in range(16)] for _ in range(8)]


def batched_classifier(dy, model, hidden=128, batch=64):
    E, W = model.add_lookup_parameters((1000, hidden)), model.add_parameters((20, hidden))
    V, b = model.add_parameters((hidden, hidden)), model.add_parameters(hidden)
    rng = random.Random(3)

    def loss(sample):
        x = dy.average([dy.lookup_batch(E, words) for words in sample])
        h = dy.tanh(V * dy.tanh(V * x + b) + b)
        return dy.sum_batches(dy.pickneglogsoftmax_batch(W * h, [word % 20 for word in sample[0]]))

    return loss, [[[rng.randrange(1000) for _ in range(batch)] for _ in range(12)] for _ in range(8)]


def sentences_at_once(dy, model, hidden=128):
    loss, samples = tagger(dy, model, hidden)
    return lambda group: dy.esum([loss(sample) for sample in group]), [samples[:8], samples[8:]]


PROGRAMS = {
    "language model": language_model,
    "tagger": tagger,
    "TreeLSTM": tree_lstm,
    "transition parser": transition_parser,
    "tagger, 8 sentences": sentences_at_once,
    "language model, batched": batched_language_model,
    "classifier, batched": batched_classifier,
}


def with_new_words(sample, rng):
    if isinstance(sample, list):
        return [with_new_words(part, rng) for part in sample]
    return rng.randrange(1000)


class Training:
    """A program with its model and trainer."""

    def __init__(self, dy, make, rng=None):
        self.dy, self.model = dy, dy.ParameterCollection()
        self.loss, self.samples = make(dy, self.model)
        self.trainer, self.rng = dy.AdamTrainer(self.model), rng

    def round(self):
        """Milliseconds per sample of going through all samples."""
        if self.rng is not None:
            self.samples = with_new_words(self.samples, self.rng)
        wall, cpu = time.perf_counter(), time.thread_time()
        for sample in self.samples:
            self.dy.renew_cg()
            loss = self.loss(sample)
            loss.value()
            loss.backward()
            self.trainer.update()
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        return 1e3 * wall / len(self.samples), 1e3 * cpu / len(self.samples)


def main():
    del sys.path[0]  # where the benchmark is found by DyNet's name
    if sys.argv[1] == "dynet":
        import dynet as dy
    else:
        import edbatch.dynet as dy
    trainings, rng = {}, random.Random(4) if "--new-words" in sys.argv else None
    for line in sys.stdin:
        (name,) = json.loads(line)
        if name not in trainings:
            trainings[name] = Training(dy, PROGRAMS[name], rng)
        print(json.dumps(trainings[name].round()), flush=True)


if __name__ == "__main__":
    main()
