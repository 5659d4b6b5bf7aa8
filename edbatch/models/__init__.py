"""Models and layers, built on the public API alone."""

from edbatch.models import generation
from edbatch.models.attention_decoder import AttentionEncoderDecoder
from edbatch.models.classifier import Classifier
from edbatch.models.encoder_decoder import EncoderDecoder
from edbatch.models.experts import MixtureOfExperts
from edbatch.models.gru import GRU, SimpleRNN
from edbatch.models.lattice import LatticeGRU, LatticeLSTM
from edbatch.models.lstm import LSTM, CoupledLSTM, PeepholeLSTM
from edbatch.models.mvrnn import MVRNN
from edbatch.models.parser import TransitionParser
from edbatch.models.ponder import AdaptiveGRU
from edbatch.models.recurrent import Bidirectional, Recurrent, Stacked, State
from edbatch.models.tagger import BiLSTMTagger
from edbatch.models.torch_weights import from_torch
from edbatch.models.tree_generator import TreeGenerator
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.models.trees import ChildSumTreeLSTM, TreeGRU

__all__ = [
    "GRU",
    "LSTM",
    "MVRNN",
    "AdaptiveGRU",
    "AttentionEncoderDecoder",
    "BiLSTMTagger",
    "Bidirectional",
    "ChildSumTreeLSTM",
    "Classifier",
    "CoupledLSTM",
    "EncoderDecoder",
    "LatticeGRU",
    "LatticeLSTM",
    "MixtureOfExperts",
    "PeepholeLSTM",
    "Recurrent",
    "SimpleRNN",
    "Stacked",
    "State",
    "TransitionParser",
    "TreeGRU",
    "TreeGenerator",
    "TreeLSTM",
    "from_torch",
    "generation",
]
