"""A stack-augmented parser and interpreter, whose tracking LSTM is also asked for the transitions."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.torch.published.network import Network

WORDS, CLASSES = 40, 3


def tree_lstm(c1, c2, lstm_in):
    a, i, f1, f2, o = lstm_in.chunk(5, 1)
    c = a.tanh() * i.sigmoid() + f1.sigmoid() * c1 + f2.sigmoid() * c2
    h = o.sigmoid() * c.tanh()
    return h, c


class Reduce(nn.Module):
    def __init__(self, size, tracker_size):
        super().__init__()
        self.left = nn.Linear(size, 5 * size)
        self.right = nn.Linear(size, 5 * size, bias=False)
        self.track = nn.Linear(tracker_size, 5 * size, bias=False)

    def forward(self, left, right, tracking):
        (lh, lc), (rh, rc) = left.chunk(2, 1), right.chunk(2, 1)
        lstm_in = self.left(lh)
        lstm_in += self.right(rh)
        lstm_in += self.track(tracking)
        return torch.cat(tree_lstm(lc, rc, lstm_in), 1)


class Tracker(nn.Module):
    def __init__(self, size, tracker_size):
        super().__init__()
        self.rnn = nn.LSTMCell(3 * size, tracker_size)
        self.transition = nn.Linear(tracker_size, 2)
        self.state_size = tracker_size

    def reset_state(self):
        self.state = None

    def forward(self, buffer, stack):
        heads = [one.chunk(2, 1)[0] for one in (buffer[-1], stack[-1], stack[-2])]
        x = torch.cat(heads, 1)
        if self.state is None:
            self.state = 2 * [x.data.new(x.size(0), self.state_size).zero_()]
        self.state = self.rnn(x, self.state)
        return self.state[0], self.transition(self.state[0])


class SPINN(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Embedding(WORDS, size)
        self.projection = nn.Linear(size, 2 * size)
        self.reduce = Reduce(size, size // 2)
        self.tracker = Tracker(size, size // 2)
        self.out = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Dropout(0.0), nn.Linear(size, CLASSES))

    def forward(self, sentence, transitions, label):
        words = self.projection(self.embed(sentence))
        buffer = list(torch.split(words, 1, 0))[::-1]
        buffer.insert(0, torch.zeros_like(buffer[0]))
        stack = [buffer[0], buffer[0]]
        self.tracker.reset_state()
        loss = 0
        for transition in transitions:
            tracking, scores = self.tracker(buffer, stack)
            loss = loss + F.cross_entropy(scores, torch.tensor([transition]))
            if transition == 0:
                stack.append(buffer.pop())
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(self.reduce(left, right, tracking))
        answer = self.out(stack[-1].chunk(2, 1)[0])
        return loss / len(transitions) + F.cross_entropy(answer, label), answer.detach()


def samples(rng, count, nodes):
    def moves(leaves):
        if leaves == 1:
            return [0]
        left = int(rng.integers(1, leaves))
        return [*moves(left), *moves(leaves - left), 1]

    found = []
    for _ in range(count):
        length = max(1, int(rng.integers(nodes // 4, nodes * 3 // 4)))
        sentence, label = (torch.from_numpy(rng.integers(0, top, n)) for top, n in ((WORDS, length), (CLASSES, 1)))
        found.append((sentence, moves(length), label))
    return found


NETWORK = Network(
    "transitions, SPINN with a tracker (Bowman et al. 2016)", SPINN, samples, lambda result, *given: result[0],
)  # fmt: skip
