"""Models and layers, built on the public API alone.

Everywhere `model` is the collection that the parameters are added to; `words`, `labels`, `tags` and other plurals are
numbers of what there is, as the rows of an embedding; `dim` is the size of embeddings and states.
"""

from edbatch.models import generation
from edbatch.models.classifier import Classifier
from edbatch.models.encoder_decoder import AttentionEncoderDecoder, EncoderDecoder
from edbatch.models.experts import MixtureOfExperts
from edbatch.models.gru import GRU, SimpleRNN
from edbatch.models.language_model import LanguageModel
from edbatch.models.lattice import LatticeGRU, LatticeLSTM
from edbatch.models.lstm import LSTM
from edbatch.models.module_network import ModuleNetwork
from edbatch.models.parser import TransitionParser
from edbatch.models.recurrent import Bidirectional, Recurrent, Stacked, State
from edbatch.models.tagger import BiLSTMTagger
from edbatch.models.torch_weights import from_torch
from edbatch.models.tree_generator import TreeGenerator
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.models.tree_lstm_variants import ChildSumTreeLSTM, TreeLSTM2Type
from edbatch.models.tree_rnn import MVRNN, RNTN, TreeRNN
from edbatch.models.trees import TreeFC, TreeGRU

__all__ = [
    "GRU",
    "LSTM",
    "MVRNN",
    "RNTN",
    "AttentionEncoderDecoder",
    "BiLSTMTagger",
    "Bidirectional",
    "ChildSumTreeLSTM",
    "Classifier",
    "EncoderDecoder",
    "LanguageModel",
    "LatticeGRU",
    "LatticeLSTM",
    "MixtureOfExperts",
    "ModuleNetwork",
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
