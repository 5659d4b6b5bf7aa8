"""Programs in DyNet's style, whose parameters after each update real DyNet was asked for (`programs.json`).

Runs with both: nothing here is newer than Python 3.6. Each makes parameters of fixed values and returns a function that
records the loss of sample t.
"""

import math

import numpy as np

WORDS, TAGS, DIM, HID = 12, 4, 5, 6


class Numbers:
    """Parameters of fixed values."""

    def __init__(self, dy, seed=0):
        self.dy, self.model = dy, dy.ParameterCollection()
        self.rng = np.random.RandomState(seed)

    def add(self, *shape):
        return self.model.add_parameters(shape, init=0.6 * self.rng.randn(*shape) / np.sqrt(shape[-1]))

    def table(self, *shape):
        return self.model.lookup_parameters_from_numpy(0.5 * self.rng.randn(*shape))

    def fixed(self, builder):
        """A builder's parameters, with fixed values."""
        for x in builder.param_collection().parameters_list():
            x.set_value(0.6 * self.rng.randn(*x.shape()) / np.sqrt(x.shape()[-1]))
        return builder


def sentence(t, most=6):
    rng = np.random.RandomState(100 + t)
    n = rng.randint(2, most)
    return rng.randint(0, WORDS, n).tolist(), rng.randint(0, TAGS, n).tolist()


def language_model(dy, m):
    E, W, b = m.table(WORDS, DIM), m.add(WORDS, HID), m.add(WORDS)
    lstm = m.fixed(dy.VanillaLSTMBuilder(1, DIM, HID, m.model))

    def loss(t):
        words, _ = sentence(t)
        state, losses = lstm.initial_state(), []
        for word, following in zip(words, words[1:] + [0]):
            state = state.add_input(E[word])
            losses.append(dy.pickneglogsoftmax(W * state.output() + b, following))
        return dy.esum(losses)

    return loss


def batched_language_model(dy, m):
    E, W, b = m.table(WORDS, DIM), m.add(WORDS, HID), m.add(WORDS)
    lstm = m.fixed(dy.VanillaLSTMBuilder(2, DIM, HID, m.model))

    def loss(t):
        rows = np.random.RandomState(t).randint(0, WORDS, (5, 4))
        state, losses = lstm.initial_state(), []
        for now, following in zip(rows[:-1].tolist(), rows[1:].tolist()):
            state = state.add_input(dy.lookup_batch(E, now))
            losses.append(dy.pickneglogsoftmax_batch(dy.affine_transform([b, W, state.output()]), following))
        return dy.sum_batches(dy.esum(losses)) / 4

    return loss


def masked_language_model(dy, m):
    E, W, b = m.table(WORDS, DIM), m.add(WORDS, HID), m.add(WORDS)
    rnn = m.fixed(dy.SimpleRNNBuilder(1, DIM, HID, m.model))

    def loss(t):
        rng = np.random.RandomState(t)
        rows, lengths = rng.randint(0, WORDS, (5, 3)), rng.randint(2, 5, 3)
        state, losses = rnn.initial_state(), []
        for at in range(4):
            state = state.add_input(dy.lookup_batch(E, rows[at].tolist()))
            one = dy.pickneglogsoftmax_batch(W * state.output() + b, rows[at + 1].tolist())
            mask = dy.inputTensor((lengths > at).astype(float).reshape(1, 3), batched=True)
            losses.append(dy.cmult(one, mask))
        return dy.mean_batches(dy.esum(losses))

    return loss


def tagger(dy, m):
    E, W = m.table(WORDS, DIM), m.add(TAGS, HID)
    forth, back = (m.fixed(dy.LSTMBuilder(1, DIM, HID // 2, m.model)) for _ in range(2))

    def loss(t):
        words, tags = sentence(t)
        xs = [dy.lookup(E, word) for word in words]
        left, right = forth.initial_state().transduce(xs), back.initial_state().transduce(xs[::-1])[::-1]
        hs = [dy.concatenate([f, b]) for f, b in zip(left, right)]
        return dy.average([dy.pickneglogsoftmax(W * h, tag) for h, tag in zip(hs, tags)])

    return loss


def tagger_with_characters(dy, m):
    E, C, W, V = m.table(WORDS, DIM), m.table(8, 3), m.add(TAGS, HID), m.add(HID, DIM + 4)
    chars = m.fixed(dy.LSTMBuilder(1, 3, 4, m.model))

    def loss(t):
        words, tags = sentence(t)
        losses = []
        for word, tag in zip(words, tags):
            letters = [C[(word * k) % 8] for k in range(1, 2 + word % 3)]
            x = dy.concatenate([E[word], chars.initial_state().transduce(letters)[-1]])
            losses.append(dy.pickneglogsoftmax(W * dy.tanh(V * x), tag))
        return dy.esum(losses)

    return loss


def bidirectional_tagger(dy, m):
    E, W, b = m.table(WORDS, DIM), m.add(TAGS, HID), m.add(TAGS)
    rnn = m.fixed(dy.BiRNNBuilder(2, DIM, HID, m.model, dy.GRUBuilder))

    def loss(t):
        words, tags = sentence(t)
        hs = rnn.transduce([E[word] for word in words])
        return dy.esum([-dy.log(dy.pick(dy.softmax(W * h + b), tag)) for h, tag in zip(hs, tags)])

    return loss


def tree_lstm(dy, m):
    E, W = m.table(WORDS, HID), m.add(TAGS, HID)
    Us = [[m.add(HID, HID) for _ in range(2)] for _ in "iouff"]
    bs = [m.add(HID) for _ in "iouff"]

    def node(tree):
        if isinstance(tree, int):
            return dy.tanh(E[tree]), dy.cmult(E[tree], E[tree])
        (h1, c1), (h2, c2) = node(tree[0]), node(tree[1])
        sums = [dy.affine_transform([b, U[0], h1, U[1], h2]) for U, b in zip(Us, bs)]
        i, o, f1, f2 = (dy.logistic(sums[k]) for k in (0, 1, 3, 4))
        c = dy.cmult(i, dy.tanh(sums[2])) + dy.cmult(f1, c1) + dy.cmult(f2, c2)
        return dy.cmult(o, dy.tanh(c)), c

    def loss(t):
        words, tags = sentence(t)
        tree = words[0]
        for k, word in enumerate(words[1:]):
            tree = (tree, word) if k % 2 else (word, tree)
        return dy.pickneglogsoftmax(W * node(tree)[0], tags[0])

    return loss


def encoder_decoder(dy, m):
    E, W, b = m.table(WORDS, DIM), m.add(WORDS, 2 * HID), m.add(WORDS)
    W1, W2, v = m.add(4, HID), m.add(4, 2 * HID), m.add(1, 4)
    encoder = m.fixed(dy.LSTMBuilder(1, DIM, HID, m.model))
    decoder = m.fixed(dy.LSTMBuilder(1, DIM + HID, HID, m.model))

    def loss(t):
        words, _ = sentence(t)
        hs = dy.concatenate_cols(encoder.initial_state().transduce([E[word] for word in words]))
        keys, losses, last = W1 * hs, [], E[0]
        state = decoder.initial_state().add_input(dy.vecInput(DIM + HID))
        for word in reversed(words):
            query = W2 * dy.concatenate(list(state.s()))
            weights = dy.softmax(dy.transpose(v * dy.tanh(dy.colwise_add(keys, query))))
            context = hs * weights
            state = state.add_input(dy.concatenate([context, last]))
            out = dy.affine_transform([b, W, dy.concatenate([state.output(), dy.reshape(context, (HID,))])])
            losses.append(dy.pickneglogsoftmax(out, word))
            last = E[word]
        return dy.esum(losses)

    return loss


def graph_parser(dy, m):
    E, head, dependent, out = m.table(WORDS, DIM), m.add(HID, HID), m.add(HID, HID), m.add(1, HID)
    bias = m.add(HID)
    rnn = m.fixed(dy.BiRNNBuilder(1, DIM, HID, m.model, dy.VanillaLSTMBuilder))

    def loss(t):
        words, _ = sentence(t)
        heads = np.random.RandomState(t).randint(0, len(words), len(words)).tolist()
        hs = rnn.transduce([E[word] for word in words])
        over, under = [head * h for h in hs], [dependent * h for h in hs]
        losses = []
        for at, gold in enumerate(heads):
            scores = [out * dy.tanh(o + under[at] + bias) for o in over]
            right = scores[gold]
            wrong = dy.emax([s + (0.0 if k == gold else 1.0) for k, s in enumerate(scores)])
            losses.append(wrong - right)
        return dy.esum(losses)

    return loss


def transition_parser(dy, m):
    E, W, V, b = m.table(WORDS, DIM), m.add(HID, 3 * DIM), m.add(3, HID), m.add(HID)
    compose, empty = m.add(DIM, 2 * DIM), m.add(DIM)

    def loss(t):
        words, _ = sentence(t)
        buffer, stack, losses = [E[word] for word in words][::-1], [], []
        rng = np.random.RandomState(t)
        while buffer or len(stack) > 1:
            seen = ([empty, empty] + stack)[-2:] + [buffer[-1] if buffer else empty]
            scores = V * dy.rectify(W * dy.concatenate(seen) + b)
            if len(stack) < 2 or (buffer and rng.rand() < 0.5):
                action = 0
                stack.append(buffer.pop())
            else:
                action = 1 + rng.randint(2)
                right, left = stack.pop(), stack.pop()
                pair = [left, right] if action == 1 else [right, left]
                stack.append(dy.tanh(compose * dy.concatenate(pair)))
            losses.append(dy.hinge(scores, action))
        return dy.esum(losses)

    return loss


def text_cnn(dy, m):
    E, F, b, W = m.table(WORDS, DIM), m.add(1, 2, DIM, 3), m.add(3), m.add(TAGS, 3)

    def loss(t):
        words, tags = sentence(t)
        words = words + [0]
        x = dy.concatenate([dy.reshape(E[word], (1, 1, DIM)) for word in words], d=1)
        y = dy.conv2d_bias(x, F, b, [1, 1])
        pooled = dy.maxpooling2d(y, [1, len(words) - 1], [1, 1])
        return dy.pickneglogsoftmax(W * dy.rectify(dy.reshape(pooled, (3,))), tags[0])

    return loss


def reinforce(dy, m):
    W, V, base = m.add(HID, DIM), m.add(3, HID), m.add(1)

    def loss(t):
        rng = np.random.RandomState(t)
        losses = []
        for _ in range(3):
            x = dy.inputVector(rng.randn(DIM))
            logs = dy.log_softmax(V * dy.tanh(W * x))
            action = int(rng.randint(3))
            reward = float(action == 1)
            losses.append(-(dy.nobackprop(reward - base) * dy.pick(logs, action)) + dy.square(base - reward))
        return dy.esum(losses)

    return loss


def coupled_language_model(dy, m):
    E, W = m.table(WORDS, DIM), m.add(WORDS, HID)
    lstm = m.fixed(dy.CoupledLSTMBuilder(2, DIM, HID, m.model))

    def loss(t):
        words, _ = sentence(t)
        outs = lstm.initial_state().add_inputs([E[word] for word in words])
        return dy.esum([dy.pickneglogsoftmax(W * s.output(), word) for s, word in zip(outs, words[1:] + [0])])

    return loss


def fast_language_model(dy, m):
    E, W = m.table(WORDS, DIM), m.add(WORDS, HID)
    lstm = m.fixed(dy.FastLSTMBuilder(1, DIM, HID, m.model))

    def loss(t):
        words, _ = sentence(t)
        h0 = [dy.inputVector(np.linspace(-1, 1, HID)), dy.inputVector(np.linspace(1, 0, HID))]
        outs = lstm.initial_state(h0).transduce([E[word] for word in words])
        return dy.esum([dy.pickneglogsoftmax(W * h, word) for h, word in zip(outs, words[1:] + [0])])

    return loss


def compact_batched(dy, m):
    E, W, b = m.table(WORDS, DIM), m.add(TAGS, HID), m.add(TAGS)
    lstm = m.fixed(dy.CompactVanillaLSTMBuilder(2, DIM, HID, m.model))

    def loss(t):
        rng = np.random.RandomState(t)
        rows, tags = rng.randint(0, WORDS, (4, 3)), rng.randint(0, TAGS, 3)
        h = lstm.initial_state().transduce([dy.lookup_batch(E, row.tolist()) for row in rows])[-1]
        return dy.sum_batches(dy.pickneglogsoftmax_batch(W * h + b, tags.tolist()))

    return loss


def normalised(dy, m):
    E, W, g, b, V = m.table(WORDS, DIM), m.add(HID, DIM), m.add(HID), m.add(HID), m.add(TAGS, HID)
    s = m.add(1)

    def loss(t):
        words, tags = sentence(t)
        hs = [dy.layer_norm(dy.weight_norm(W, s) * E[word], g, b) for word in words]
        best = dy.max_dim(dy.concatenate_cols(hs), 1)
        return dy.pickneglogsoftmax(V * best, tags[0]) + dy.l2_norm(s)

    return loss


def grammar_scores(dy, m):
    E, P, W, T = m.table(WORDS, DIM), m.add(DIM, 2 * DIM), m.add(1, DIM), m.add(TAGS, TAGS)
    V = m.add(TAGS, DIM)

    def loss(t):
        words, tags = sentence(t)
        scores = [V * E[word] for word in words]
        forward, gold = scores[0], dy.pick(scores[0], tags[0])
        for k in range(1, len(words)):
            steps = [dy.logsumexp([forward[p] + T[tag][p] for p in range(TAGS)]) for tag in range(TAGS)]
            forward = dy.concatenate(steps) + scores[k]
            gold = gold + dy.pick(T[tags[k]], tags[k - 1]) + dy.pick(scores[k], tags[k])
        whole = dy.logsumexp([dy.pick(forward, p) for p in range(TAGS)])
        span = dy.tanh(P * dy.concatenate([E[words[0]], E[words[-1]]]))
        return whole - gold + dy.square(W * span)

    return loss


PROGRAMS = {
    "language_model": (language_model, "SimpleSGDTrainer", {"learning_rate": 0.2}),
    "batched_language_model": (batched_language_model, "AdamTrainer", {}),
    "masked_language_model": (masked_language_model, "AdagradTrainer", {}),
    "tagger": (tagger, "MomentumSGDTrainer", {}),
    "tagger_with_characters": (tagger_with_characters, "AdamTrainer", {"alpha": 0.01}),
    "bidirectional_tagger": (bidirectional_tagger, "RMSPropTrainer", {}),
    "tree_lstm": (tree_lstm, "AdadeltaTrainer", {}),
    "encoder_decoder": (encoder_decoder, "AdamTrainer", {}),
    "graph_parser": (graph_parser, "SimpleSGDTrainer", {}),
    "transition_parser": (transition_parser, "MomentumSGDTrainer", {"learning_rate": 0.05, "mom": 0.5}),
    "text_cnn": (text_cnn, "AdamTrainer", {}),
    "reinforce": (reinforce, "SimpleSGDTrainer", {"learning_rate": 0.01}),
    "coupled_language_model": (coupled_language_model, "SimpleSGDTrainer", {}),
    "fast_language_model": (fast_language_model, "AdamTrainer", {}),
    "compact_batched": (compact_batched, "AdamTrainer", {}),
    "normalised": (normalised, "SimpleSGDTrainer", {"learning_rate": 0.05}),
    "grammar_scores": (grammar_scores, "SimpleSGDTrainer", {"learning_rate": 0.05}),
}
UPDATES = 60
# How trainers are set up besides: dense updates, weight decay, and clipping at another norm.
SETTINGS = {
    "tagger_with_characters": {"sparse": False},
    "tagger": {"sparse": False, "decay": 1e-3},
    "grammar_scores": {"clip": 1.0},
    "coupled_language_model": {"clip": 0.0, "restart": True},
    "reinforce": {"rate": lambda t: 0.01 + 0.09 * max(0, 1 - abs(t / 7 - 2 * math.floor(1 + t / 14) + 1)) * 0.99**t},
}


def trained(dy, name, updates=UPDATES):
    """The losses of all updates, and the parameters' values after them."""
    make, trainer, arguments = PROGRAMS[name]
    m = Numbers(dy)
    loss = make(dy, m)
    trainer = getattr(dy, trainer)(m.model, **arguments)
    settings = SETTINGS.get(name, {})
    trainer.set_sparse_updates(settings.get("sparse", True))
    if "decay" in settings:
        m.model.set_weight_decay(settings["decay"])
    if "clip" in settings:
        trainer.set_clip_threshold(settings["clip"])
    losses = []
    for t in range(updates):
        dy.renew_cg()
        found = loss(t)
        losses.append(found.scalar_value())
        found.backward()
        trainer.update()
        if "rate" in settings:
            trainer.learning_rate = settings["rate"](t)  # DyNet's CyclicalSGDTrainer
        if t == 30 and "restart" in settings:
            trainer.restart(0.05)
    lists = m.model.parameters_list() + m.model.lookup_parameters_list()
    dy.renew_cg()
    values = np.concatenate([x.npvalue().T.reshape(-1) for x in lists])  # `as_array` knows no weight decay
    return losses, values
