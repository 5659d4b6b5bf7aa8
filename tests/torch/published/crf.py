"""An LSTM both ways under a conditional random field, as PyTorch's tutorial has it: its sums read what is largest."""

import torch
import torch.nn as nn

from tests.torch.published.network import Network

WORDS, TAGS = 40, 5
START_TAG, STOP_TAG = TAGS - 2, TAGS - 1


def argmax(vec):
    _, idx = torch.max(vec, 1)
    return idx.item()


def log_sum_exp(vec):
    max_score = vec[0, argmax(vec)]
    max_score_broadcast = max_score.view(1, -1).expand(1, vec.size()[1])
    return max_score + torch.log(torch.sum(torch.exp(vec - max_score_broadcast)))


class BiLSTM_CRF(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.hidden_dim = size
        self.word_embeds = nn.Embedding(WORDS, size)
        self.lstm = nn.LSTM(size, size // 2, num_layers=1, bidirectional=True)
        self.hidden2tag = nn.Linear(size // 2 * 2, TAGS)
        self.transitions = nn.Parameter(torch.randn(TAGS, TAGS))
        self.transitions.data[START_TAG, :] = -100.0
        self.transitions.data[:, STOP_TAG] = -100.0

    def init_hidden(self):
        return torch.ones(2, 1, self.hidden_dim // 2), torch.ones(2, 1, self.hidden_dim // 2)

    def _forward_alg(self, feats):
        init_alphas = torch.full((1, TAGS), -100.0)
        init_alphas[0][START_TAG] = 0.0
        forward_var = init_alphas
        for feat in feats:
            alphas_t = []
            for next_tag in range(TAGS):
                emit_score = feat[next_tag].view(1, -1).expand(1, TAGS)
                trans_score = self.transitions[next_tag].view(1, -1)
                next_tag_var = forward_var + trans_score + emit_score
                alphas_t.append(log_sum_exp(next_tag_var).view(1))
            forward_var = torch.cat(alphas_t).view(1, -1)
        return log_sum_exp(forward_var + self.transitions[STOP_TAG])

    def _get_lstm_features(self, sentence):
        embeds = self.word_embeds(sentence).view(len(sentence), 1, -1)
        lstm_out, _ = self.lstm(embeds, self.init_hidden())
        return self.hidden2tag(lstm_out.view(len(sentence), -1))

    def _score_sentence(self, feats, tags):
        score = torch.zeros(1)
        tags = torch.cat([torch.tensor([START_TAG], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            score = score + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return score + self.transitions[STOP_TAG, tags[-1]]

    def forward(self, sentence, tags):
        feats = self._get_lstm_features(sentence)
        return self._forward_alg(feats) - self._score_sentence(feats, tags)


def samples(rng, count, nodes):
    lengths = [max(1, int(rng.integers(nodes // 2, nodes * 3 // 2))) for _ in range(count)]
    return [
        (torch.from_numpy(rng.integers(0, WORDS, n)), torch.from_numpy(rng.integers(0, TAGS - 2, n))) for n in lengths
    ]


NETWORK = Network(
    "sequences, BiLSTM-CRF of PyTorch's tutorial, reads its maxima (Lample et al. 2016)", BiLSTM_CRF, samples,
    lambda result, *given: result.sum(),
)  # fmt: skip
