"""Models and layers, built on the public API alone."""

from edbatch.models.gru import GRU, SimpleRNN
from edbatch.models.lstm import LSTM, CoupledLSTM, PeepholeLSTM
from edbatch.models.recurrent import Bidirectional, Recurrent, Stacked, State
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.models.trees import ChildSumTreeLSTM, TreeGRU

__all__ = [
    "GRU",
    "LSTM",
    "Bidirectional",
    "ChildSumTreeLSTM",
    "CoupledLSTM",
    "PeepholeLSTM",
    "Recurrent",
    "SimpleRNN",
    "Stacked",
    "State",
    "TreeGRU",
    "TreeLSTM",
]
