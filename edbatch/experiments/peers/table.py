"""Which networks in PyTorch compete with a workload of `edbatch.models.workloads`."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.experiments.peers import lattice, tagger, translation, tree_networks
from edbatch.experiments.peers.peer import Peer


class Peers(NamedTuple):
    """The networks of a workload.

    Attributes:
        per_sample: one sample after the other.
        by_hand: batched by hand, by how.
    """

    per_sample: type[Peer]
    by_hand: dict[str, type[Peer]]


PEERS = {
    "tree-lstm": Peers(tree_networks.TreeLSTMPerSample, {"by level": tree_networks.TreeLSTMByLevel}),
    "tree-gru": Peers(tree_networks.TreeGRUPerSample, {"by level": tree_networks.TreeGRUByLevel}),
    "mv-rnn": Peers(tree_networks.MVRNNPerSample, {"by level": tree_networks.MVRNNByLevel}),
    "tree-lstm-2type": Peers(tree_networks.TreeLSTM2TypePerSample, {"by level": tree_networks.TreeLSTM2TypeByLevel}),
    "tagger": Peers(
        tagger.TaggerPerSample, {"packed nn.LSTM": tagger.TaggerPacked, "by position": tagger.TaggerByPosition}
    ),
    "tagger-characters": Peers(
        tagger.TaggerPerSample, {"packed nn.LSTM": tagger.TaggerPacked, "by position": tagger.TaggerByPosition}
    ),
    "lattice-lstm": Peers(lattice.LatticeLSTMPerSample, {"by position": lattice.LatticeLSTMByPosition}),
    "lattice-gru": Peers(lattice.LatticeGRUPerSample, {"by position": lattice.LatticeGRUByPosition}),
    "encoder-decoder": Peers(
        translation.TranslationPerSample,
        {"packed nn.LSTM": translation.TranslationPacked, "padded": translation.TranslationPadded},
    ),
}
