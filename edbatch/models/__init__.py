"""Models and layers, built on the public API alone."""

from edbatch.models import generation
from edbatch.models.attention_decoder import AttentionEncoderDecoder
from edbatch.models.classifier import Classifier
from edbatch.models.encoder_decoder import EncoderDecoder
from edbatch.models.experts import MixtureOfExperts
from edbatch.models.graph_attention import GraphAttention
from edbatch.models.gru import GRU, SimpleRNN
from edbatch.models.language_model import LanguageModel
from edbatch.models.lattice import LatticeGRU, LatticeLSTM
from edbatch.models.lstm import LSTM, CoupledLSTM, PeepholeLSTM
from edbatch.models.module_network import ModuleNetwork
from edbatch.models.mvrnn import MVRNN
from edbatch.models.parser import TransitionParser
from edbatch.models.pointer import PointerDecoder
from edbatch.models.ponder import AdaptiveGRU
from edbatch.models.recurrent import Bidirectional, Recurrent, Stacked, State
from edbatch.models.tagger import BiLSTMTagger
from edbatch.models.torch_weights import from_torch
from edbatch.models.tree_generator import TreeGenerator
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.models.tree_lstm_variants import NaryTreeLSTM, TreeLSTM2Type
from edbatch.models.tree_rnn import RNTN, TreeFC, TreeRNN
from edbatch.models.trees import ChildSumTreeLSTM, TreeGRU

__all__ = [
    "GRU",
    "LSTM",
    "MVRNN",
    "RNTN",
    "AdaptiveGRU",
    "AttentionEncoderDecoder",
    "BiLSTMTagger",
    "Bidirectional",
    "ChildSumTreeLSTM",
    "Classifier",
    "CoupledLSTM",
    "EncoderDecoder",
    "GraphAttention",
    "LanguageModel",
    "LatticeGRU",
    "LatticeLSTM",
    "MixtureOfExperts",
    "ModuleNetwork",
    "NaryTreeLSTM",
    "PeepholeLSTM",
    "PointerDecoder",
    "Recurrent",
    "SimpleRNN",
    "Stacked",
    "State",
    "TransitionParser",
    "TreeFC",
    "TreeGRU",
    "TreeGenerator",
    "TreeLSTM",
    "TreeLSTM2Type",
    "TreeRNN",
    "from_torch",
    "generation",
]
