"""Models that have no peer among `peers`, as one writes them in PyTorch: by hand, or one sample after the other.

Each function copies a network's parameters and returns a function of no arguments: the loss of the mini-batch and, in
training, the gradient of the parameter that is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.base.later import Later

torch = Later("torch")

MISSING = "PyTorch is not installed; expected pip install 'edbatch[bench]'"
Form = Callable[[], tuple[float, Any]]


def available() -> bool:
    """Whether PyTorch is installed; it computes with one thread from then on, as everything does that is compared."""
    if find_spec("torch") is None:
        return False
    torch.set_num_threads(1)
    return True


def copied(parameter: eb.Parameter, training: bool = False) -> Any:
    """A tensor with a parameter's value."""
    return torch.tensor(parameter.value()).requires_grad_(training)


def language_model(network: Any, sentences: Sequence[Sequence[int]], training: bool) -> Form:
    """Packed sequences through `nn.LSTM`; one product gives the scores of all words. Compared: `W_out`."""
    functional, rnn = torch.nn.functional, torch.nn.utils.rnn
    cell = network.layers.layers[0]
    embed, out, bias = (copied(x, training) for x in (network.embed, network.W_out, network.b_out))
    lstm = torch.nn.LSTM(network.embed.shape[1], cell.dim)
    order = np.concatenate([np.arange(gate * cell.dim, (gate + 1) * cell.dim) for gate in (0, 1, 3, 2)])
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(torch.tensor(cell.W.value()[order]))
        lstm.weight_hh_l0.copy_(torch.tensor(cell.U.value()[order]))
        lstm.bias_ih_l0.copy_(torch.tensor(cell.b.value()[order]))
        lstm.bias_hh_l0.zero_()
    words = rnn.pack_sequence([torch.tensor([network.start, *one]) for one in sentences], enforce_sorted=False)
    labels = rnn.pack_sequence([torch.tensor([*one, network.end]) for one in sentences], enforce_sorted=False).data

    def loss() -> Any:
        xs = words._replace(data=functional.embedding(words.data, embed))
        hidden, _ = lstm(xs)
        return functional.cross_entropy(functional.linear(hidden.data, out, bias), labels, reduction="sum")

    return _form(loss, [embed, out, bias, *lstm.parameters()], out, training)


def full_trees(network: Any, embed: eb.Parameter, samples: Sequence[Sequence[int]], training: bool) -> Form:
    """Tree-FC level by level: those of all trees side by side. Compared: `W`."""
    functional = torch.nn.functional
    table, leaf, W, b = (copied(x, training) for x in (embed, network.W_leaf, network.W, network.b))
    words = torch.tensor(np.array(samples))

    def loss() -> Any:
        h = functional.linear(functional.embedding(words, table), leaf)
        while h.shape[1] > 1:
            h = torch.relu(functional.linear(h.reshape(h.shape[0], h.shape[1] // 2, -1), W, b))
        return h.sum()

    return _form(loss, [table, leaf, W, b], W, training)


def trees_one_by_one(network: Any, samples: Sequence[Any], training: bool) -> Form:
    """TreeRNN or RNTN, node by node; look-ups and the classifier run once a tree. Compared: `W`."""
    functional = torch.nn.functional
    parameters = {name: copied(getattr(network, name), training) for name in ("embed", "W", "b", "W_out", "b_out")}
    if hasattr(network, "V"):
        parameters["V"] = copied(network.V, training)
    embed, W, b, out, bias = (parameters[name] for name in ("embed", "W", "b", "W_out", "b_out"))
    V = parameters.get("V")
    found = [
        (torch.tensor([word for word in words if word is not None]), words, children, torch.tensor(labels))
        for words, children, labels in samples
    ]

    def of_tree(leaves: Any, words: Any, children: Any, labels: Any) -> Any:
        xs = iter(functional.embedding(leaves, embed))
        nodes: list[Any] = []
        for word, below in zip(words, children, strict=True):
            if word is not None:
                nodes.append(next(xs))
                continue
            both = torch.cat([nodes[child] for child in below])
            h = functional.linear(both, W, b)
            nodes.append(torch.tanh(h if V is None else h + (V @ both).reshape(len(h), -1) @ both))
        return functional.cross_entropy(functional.linear(torch.stack(nodes), out, bias), labels, reduction="sum")

    return _form(lambda: sum(of_tree(*one) for one in found), list(parameters.values()), W, training)


def _form(loss: Callable[[], Any], parameters: list[Any], checked: Any, training: bool) -> Form:
    def run() -> tuple[float, Any]:
        if not training:
            with torch.no_grad():
                return float(loss()), 0.0
        for parameter in parameters:
            parameter.grad = None
        total = loss()
        total.backward()
        return float(total.detach()), checked.grad.numpy()

    return run
