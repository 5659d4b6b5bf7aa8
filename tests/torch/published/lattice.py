"""Lattice LSTMs, both ways, over characters and the words that a lexicon finds in them, and a tag for each."""

import torch
from torch import nn

from tests.torch.published.network import Network

WORDS, CHARACTERS, TAGS = 60, 40, 5


class WordLSTMCell(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(input_size, 3 * hidden_size))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, 3 * hidden_size))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size))
        nn.init.orthogonal_(self.weight_ih.data)
        self.weight_hh.data.copy_(torch.eye(hidden_size).repeat(1, 3))

    def forward(self, input_, hx):
        h_0, c_0 = hx
        bias_batch = self.bias.unsqueeze(0).expand(h_0.size(0), *self.bias.size())
        wh_b = torch.addmm(bias_batch, h_0, self.weight_hh)
        wi = torch.mm(input_, self.weight_ih)
        f, i, g = torch.split(wh_b + wi, self.hidden_size, dim=1)
        return torch.sigmoid(f) * c_0 + torch.sigmoid(i) * torch.tanh(g)


class MultiInputLSTMCell(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(input_size, 3 * hidden_size))
        self.weight_hh = nn.Parameter(torch.empty(hidden_size, 3 * hidden_size))
        self.alpha_weight_ih = nn.Parameter(torch.empty(input_size, hidden_size))
        self.alpha_weight_hh = nn.Parameter(torch.empty(hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(3 * hidden_size))
        self.alpha_bias = nn.Parameter(torch.zeros(hidden_size))
        for weight in (self.weight_ih, self.weight_hh, self.alpha_weight_ih, self.alpha_weight_hh):
            nn.init.orthogonal_(weight.data)

    def forward(self, input_, c_input, hx):
        h_0, c_0 = hx
        batch_size = h_0.size(0)
        assert batch_size == 1
        bias_batch = self.bias.unsqueeze(0).expand(batch_size, *self.bias.size())
        wh_b = torch.addmm(bias_batch, h_0, self.weight_hh)
        wi = torch.mm(input_, self.weight_ih)
        i, o, g = torch.split(wh_b + wi, self.hidden_size, dim=1)
        i = torch.sigmoid(i)
        g = torch.tanh(g)
        o = torch.sigmoid(o)
        c_num = len(c_input)
        if c_num == 0:
            f = 1 - i
            c_1 = f * c_0 + i * g
        else:
            c_input_var = torch.cat(c_input, 0).squeeze(1)
            alpha_wi = torch.addmm(self.alpha_bias, input_, self.alpha_weight_ih).expand(c_num, self.hidden_size)
            alpha_wh = torch.mm(c_input_var, self.alpha_weight_hh)
            alpha = torch.sigmoid(alpha_wi + alpha_wh)
            alpha = torch.exp(torch.cat([i, alpha], 0))  # a softmax for each entry
            alpha = torch.div(alpha, alpha.sum(0))
            merge_i_c = torch.cat([g, c_input_var], 0)
            c_1 = (merge_i_c * alpha).sum(0).unsqueeze(0)
        return o * torch.tanh(c_1), c_1


class LatticeLSTM(nn.Module):
    def __init__(self, input_dim, hidden_dim, left2right=True):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.left2right = left2right
        self.word_emb = nn.Embedding(WORDS, input_dim)
        self.word_dropout = nn.Dropout(0.0)
        self.rnn = MultiInputLSTMCell(input_dim, hidden_dim)
        self.word_rnn = WordLSTMCell(input_dim, hidden_dim)

    def forward(self, input, skip_input):
        if not self.left2right:
            skip_input = backward_of(skip_input)
        input = input.transpose(1, 0)
        seq_len, batch_size = input.size(0), input.size(1)
        hx, cx = torch.zeros(batch_size, self.hidden_dim), torch.zeros(batch_size, self.hidden_dim)
        hidden_out = []
        id_list = list(range(seq_len)) if self.left2right else list(reversed(range(seq_len)))
        input_c_list = [[] for _ in range(seq_len)]
        for t in id_list:
            hx, cx = self.rnn(input[t], input_c_list[t], (hx, cx))
            hidden_out.append(hx)
            if skip_input[t]:
                words, lengths = skip_input[t]
                word_emb = self.word_dropout(self.word_emb(torch.LongTensor(words)))
                ct = self.word_rnn(word_emb, (hx, cx))
                assert ct.size(0) == len(lengths)
                for idx, length in enumerate(lengths):
                    end = t + length - 1 if self.left2right else t - length + 1
                    input_c_list[end].append(ct[idx, :].unsqueeze(0))
        if not self.left2right:
            hidden_out = list(reversed(hidden_out))
        return torch.cat(hidden_out, 0).unsqueeze(0)


def backward_of(forward_gaz):
    backward_gaz = [[] for _ in forward_gaz]
    for idx, found in enumerate(forward_gaz):
        for word, length in zip(*found, strict=True) if found else ():
            at = backward_gaz[idx + length - 1]
            if not at:
                at.extend([[], []])
            at[0].append(word)
            at[1].append(length)
    return backward_gaz


class BiLatticeTagger(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.char_embeddings = nn.Embedding(CHARACTERS, size // 2)
        self.forward_lstm = LatticeLSTM(size // 2, size // 2)
        self.backward_lstm = LatticeLSTM(size // 2, size // 2, left2right=False)
        self.hidden2tag = nn.Linear(2 * (size // 2), TAGS)

    def forward(self, chars, gaz_list, tags):
        char_embs = self.char_embeddings(chars)
        outs = torch.cat([lstm(char_embs, gaz_list) for lstm in (self.forward_lstm, self.backward_lstm)], 2)
        outs = self.hidden2tag(outs).view(chars.size(1), TAGS)
        score = torch.log_softmax(outs, 1)
        _, tag_seq = torch.max(outs, 1)
        return nn.NLLLoss(reduction="sum")(score, tags), tag_seq


def samples(rng, count, nodes):
    found = []
    for _ in range(count):
        length = max(1, int(rng.integers(nodes // 2, nodes * 3 // 2)))
        gaz = []
        for at in range(length):
            lengths = [one for one in (2, 3, 4) if at + one <= length and rng.random() < 0.25]
            gaz.append([[int(rng.integers(WORDS)) for _ in lengths], lengths] if lengths else [])
        chars, tags = (torch.from_numpy(rng.integers(0, many, length)) for many in (CHARACTERS, TAGS))
        found.append((chars.unsqueeze(0), gaz, tags))
    return found


NETWORK = Network(
    "lattices, Lattice LSTM (Zhang & Yang 2018)", BiLatticeTagger, samples, lambda result, *given: result[0],
    ((MultiInputLSTMCell, "forward"), (WordLSTMCell, "forward")),
)  # fmt: skip
