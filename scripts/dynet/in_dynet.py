"""Three of ED-Batch's models as one writes them for DyNet; real DyNet runs this file, with its own Python.

    python in_dynet.py [--dynet-autobatch 1 ...]

Each line of the standard input is a question as JSON, each answer a line; `scripts/bench/dynet.py` asks them.
"""

import json
import sys
import time

import numpy as np


class Model:
    """Parameters with given values, by their names in `edbatch.models`; a model says what the loss of a sample is."""

    whole = ("W_out", "b_out")  # what is one parameter here, too, besides tables

    def __init__(self, dy, given):
        self.dy, self.collection = dy, dy.ParameterCollection()
        self.dim = given["W_out"].shape[1]
        self.by_name = {name: self.collection.parameters_from_numpy(given[name]) for name in self.whole}
        tables = [name for name in given if name.startswith("embed")]
        self.by_name.update({name: self.collection.lookup_parameters_from_numpy(given[name]) for name in tables})
        self.W_out, self.b_out = self.by_name["W_out"], self.by_name["b_out"]
        self.prepare(given)

    def prepare(self, given):
        """What else a model has."""

    def loss(self, sample):
        raise NotImplementedError

    def classified(self, hidden, labels):
        """The sum of the cross-entropies of a sample's places."""
        dy, b, W = self.dy, self.b_out, self.W_out
        pairs = zip(hidden, labels)
        return dy.esum([dy.pickneglogsoftmax(dy.affine_transform([b, W, h]), label) for h, label in pairs])

    def gradient(self, name):
        return self.by_name[name].grad_as_array()


class TreeByGates(Model):
    """TreeLSTM; a parameter for each gate, as in the examples of DyNet."""

    def prepare(self, given):
        d, add = self.dim, self.collection.parameters_from_numpy
        leaf = [slice(k * d, (k + 1) * d) for k in range(3)]
        inner = [slice(k * d, (k + 1) * d) for k in range(5)]
        self.leaf_gates = [(add(given["b_leaf"][k]), add(given["W"][k])) for k in leaf]
        self.gates = [(add(given["b"][k]), add(given["U"][k, :d]), add(given["U"][k, d:])) for k in inner]

    def gradient(self, name):
        if name in ("W", "b_leaf"):
            return np.concatenate([gate[name == "W"].grad_as_array() for gate in self.leaf_gates])
        if name == "b":
            return np.concatenate([b.grad_as_array() for b, _, _ in self.gates])
        if name == "U":
            both = [[half.grad_as_array() for half in halves] for _, *halves in self.gates]
            return np.concatenate([np.concatenate(halves, 1) for halves in both])
        return super().gradient(name)

    def leaf(self, x):
        dy = self.dy
        i, o, u = [dy.affine_transform([b, W, x]) for b, W in self.leaf_gates]
        c = dy.cmult(dy.logistic(i), dy.tanh(u))
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    def compose(self, h1, c1, h2, c2):
        dy = self.dy
        i, o, f1, f2, u = [dy.affine_transform([b, U1, h1, U2, h2]) for b, U1, U2 in self.gates]
        kept = [dy.cmult(dy.logistic(f1), c1), dy.cmult(dy.logistic(f2), c2)]
        c = dy.esum([dy.cmult(dy.logistic(i), dy.tanh(u)), *kept])
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    def loss(self, sample):
        (words, children), labels = sample
        embed, states = self.by_name["embed"], []
        for word, below in zip(words, children):
            if word is None:
                states.append(self.compose(*states[below[0]], *states[below[1]]))
            else:
                states.append(self.leaf(embed[word]))
        return self.classified([h for h, _ in states], labels)


class TreeStacked(TreeByGates):
    """TreeLSTM; one product for all gates of a node."""

    whole = ("W_out", "b_out", "W", "b_leaf", "b")

    def prepare(self, given):
        d, add = self.dim, self.collection.parameters_from_numpy
        self.W, self.b_leaf, self.b = (self.by_name[name] for name in ("W", "b_leaf", "b"))
        self.U1, self.U2 = add(given["U"][:, :d]), add(given["U"][:, d:])

    def gradient(self, name):
        if name == "U":
            return np.concatenate([self.U1.grad_as_array(), self.U2.grad_as_array()], 1)
        return Model.gradient(self, name)

    def leaf(self, x):
        dy, d, part = self.dy, self.dim, self.dy.pick_range
        gates = dy.affine_transform([self.b_leaf, self.W, x])
        both, u = dy.logistic(part(gates, 0, 2 * d)), dy.tanh(part(gates, 2 * d, 3 * d))
        c = dy.cmult(part(both, 0, d), u)
        return dy.cmult(part(both, d, 2 * d), dy.tanh(c)), c

    def compose(self, h1, c1, h2, c2):
        dy, d, part = self.dy, self.dim, self.dy.pick_range
        gates = dy.affine_transform([self.b, self.U1, h1, self.U2, h2])
        four, u = dy.logistic(part(gates, 0, 4 * d)), dy.tanh(part(gates, 4 * d, 5 * d))
        i, o, f1, f2 = [part(four, k * d, (k + 1) * d) for k in range(4)]
        c = dy.esum([dy.cmult(i, u), dy.cmult(f1, c1), dy.cmult(f2, c2)])
        return dy.cmult(o, dy.tanh(c)), c


class Recurrent(Model):
    """What models of DyNet's own LSTM have in common: it has the order of gates of `edbatch.models.LSTM`."""

    def builder(self, given, *layers):
        d = self.dim
        lstm = self.dy.VanillaLSTMBuilder(len(layers), d, d, self.collection, forget_bias=0.0)
        for layer, parameters in zip(layers, lstm.get_parameters()):
            for end, parameter in zip("WUb", parameters):
                parameter.set_value(given["%s.%s" % (layer, end)])
                self.by_name["%s.%s" % (layer, end)] = parameter
        return lstm


class Tagger(Recurrent):
    """BiLSTM tagger."""

    whole = ("W_out", "b_out", "b_hidden")

    def prepare(self, given):
        layers = sorted({name[5:-2] for name in given if name.startswith("right")})
        self.right = self.builder(given, *["right" + layer for layer in layers])
        self.left = self.builder(given, *["left" + layer for layer in layers])
        d, add = self.dim, self.collection.parameters_from_numpy
        self.b, W = self.by_name["b_hidden"], given["W_hidden"]
        self.W_right, self.W_left = add(W[:, :d]), add(W[:, d:])

    def gradient(self, name):
        if name == "W_hidden":
            return np.concatenate([self.W_right.grad_as_array(), self.W_left.grad_as_array()], 1)
        return super().gradient(name)

    def loss(self, sample):
        dy, embed = self.dy, self.by_name["embed"]
        (words,), tags = sample
        xs = [embed[word] for word in words]
        right = self.right.initial_state().transduce(xs)
        left = self.left.initial_state().transduce(xs[::-1])[::-1]
        b, W_right, W_left = self.b, self.W_right, self.W_left
        hidden = [dy.tanh(dy.affine_transform([b, W_right, r, W_left, l])) for r, l in zip(right, left)]
        return self.classified(hidden, tags)


class Lattice(Recurrent):
    """LatticeLSTM."""

    def prepare(self, given):
        self.character, self.word = self.builder(given, "character"), self.builder(given, "word")

    def loss(self, sample):
        dy, (arcs,), tags = self.dy, *sample
        characters, words = self.by_name["embed_character"], self.by_name["embed_word"]
        zero = dy.zeros(self.dim)
        states = [(zero, zero)]
        for node, ends in enumerate(arcs[1:], 1):
            found = []
            for source, number in ends:
                lstm, table = (self.character, characters) if source == node - 1 else (self.word, words)
                found.append(lstm.initial_state(states[source]).add_input(table[number]).s())
            states.append(found[0] if len(found) == 1 else tuple(map(dy.average, map(list, zip(*found)))))
        return self.classified([h for _, h in states[1:]], tags)


MODELS = {
    "tree-lstm": {"by gates": TreeByGates, "stacked": TreeStacked},
    "tagger": {"builder": Tagger},
    "lattice-lstm": {"builder": Lattice},
}


class Task:
    """A model, its trainer, and mini-batches.

    Args:
        name, style: of the model.
        folder: of the file with the values of its parameters.
        lr: Adam's.
    """

    def __init__(self, dy, name, style, folder, lr):
        with np.load(folder + "/parameters.npz") as given:
            self.given = dict(given)
        with open(folder + "/samples.json") as file:
            self.samples = json.load(file)
        self.dy, self.folder, self.made = dy, folder, lambda: MODELS[name][style](dy, self.given)
        self.model = self.made()
        self.trainer = dy.AdamTrainer(self.model.collection, lr)
        self.trainer.set_clip_threshold(-1)

    def loss(self, batch):
        self.dy.renew_cg()
        return self.dy.esum([self.model.loss(sample) for sample in batch])

    def forward(self, batch):
        self.loss(batch).value()

    def train(self, batch):
        loss = self.loss(batch)
        loss.value()
        loss.backward()
        self.trainer.update()

    def timed(self, what, batches):
        """Seconds of a mini-batch, by the clock and of this thread."""
        run = getattr(self, what)
        wall, cpu = time.perf_counter(), time.thread_time()
        for numbers in batches:
            run([self.samples[number] for number in numbers])
        return [(time.perf_counter() - wall) / len(batches), (time.thread_time() - cpu) / len(batches)]

    def checked(self, numbers):
        """The loss of a mini-batch, of the parameters that were given; its gradients go to the folder."""
        trained, self.model = self.model, self.made()
        loss = self.loss([self.samples[number] for number in numbers])
        found = loss.value()
        loss.backward()
        np.savez(self.folder + "/gradients.npz", **{name: self.model.gradient(name) for name in self.given})
        self.model = trained
        return found


def main():
    del sys.path[0]  # the folder of this file
    import dynet as dy

    task = None
    for line in sys.stdin:
        what, *of = json.loads(line)
        if what == "task":
            task = Task(dy, *of)
            answer = True
        else:
            answer = task.timed(what, *of) if what in ("forward", "train") else getattr(task, what)(*of)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
