"""Models that have no peer among `peers`, as one writes them in PyTorch: by hand, or one sample after the other.

Each function copies a network's parameters and returns a function of no arguments: the loss of the mini-batch and, in
training, the gradient of the parameter that is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.base.later import Later

torch = Later("torch")
tree_rnn = Later("edbatch.experiments.peers.tree_rnn")
tree_samples = Later("edbatch.experiments.peers.samples")

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


def trees(name: str, model: eb.ParameterCollection, samples: Sequence[Any], training: bool) -> dict[str, Form]:
    """TreeRNN or RNTN, tree by tree and level by level; what is known of a tree is found once. Compared: `W`."""
    kinds = {
        "tree-rnn": (tree_rnn.TreeRNNPerSample, tree_rnn.TreeRNNByLevel),
        "rntn": (tree_rnn.RNTNPerSample, tree_rnn.RNTNByLevel),
    }[name]
    found = {}
    for side, kind in zip(("pytorch per sample", "pytorch by hand, by level"), kinds, strict=True):
        peer = kind(model)
        prepared = [peer.prepare(tree_samples.TreeSample(*sample)) for sample in samples]
        loss = partial(_loss_of_peer, peer, prepared)
        found[side] = _form(loss, list(peer.parameters()), peer.W, training)
    return found


def _loss_of_peer(peer: Any, prepared: list[Any]) -> Any:
    return peer.loss(peer.batch(prepared))


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
