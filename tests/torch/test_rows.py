"""Matrices of which each sample has another number of rows: functions of them, beside PyTorch sample by sample."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import edbatch as eb
from edbatch.torch import Batched
from tests.torch.cases import CASES
from tests.torch.test_functions import Case, compared

WORDS, SIZE = 9, 6
FLOAT = {"dtype": torch.float64}
LENGTHS = (3, 1, 5, 3, 2)


class Rows(nn.Module):
    """Runs code with rows that were looked up, others that were stacked, and some layers."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.linear = nn.Embedding(WORDS, SIZE, **FLOAT), nn.Linear(SIZE, SIZE, **FLOAT)
        self.norm, self.padded = nn.LayerNorm(SIZE, **FLOAT), nn.Embedding(WORDS, SIZE, padding_idx=2, **FLOAT)
        self.lstm = nn.LSTM(SIZE, SIZE, 2, batch_first=True, bidirectional=True, **FLOAT)
        self.gru = nn.GRU(SIZE, SIZE, **FLOAT)
        self.weight, self.bias = (nn.Parameter(torch.randn(*shape, **FLOAT)) for shape in ((SIZE, 3), (SIZE,)))
        self.function = function

    def forward(self, words):
        x = self.embed(words)
        return self.function(self, x, torch.stack([self.linear(one) for one in x]), words)


def sentences(*lengths):
    rng = np.random.default_rng(0)
    return [torch.from_numpy(rng.integers(0, WORDS, length)) for length in lengths]


def mean_of_states(m, x, y, w):
    outputs, (h, c) = m.lstm(x)
    return outputs.mean(0), h, c


# What stays apart as rows: fewer types than lengths.
BY_ROWS = {
    "layers": lambda m, x, y, w: m.linear(m.norm(torch.tanh(m.linear(x)))).sum(0),
    "operators": lambda m, x, y, w: ((x + y * 2 - m.bias) / 3 @ m.weight).mean(dim=0),
    "softmax": lambda m, x, y, w: (x.softmax(-1) * F.log_softmax(y, dim=1)).sum(0),
    "joined": lambda m, x, y, w: (torch.cat([x, y], 1).sum(0), torch.cat([x, y]).mean(0), torch.cat([x, x], -1)[0]),
    "parts": lambda m, x, y, w: (x[0] + y[-1], x[0:1].sum(0), x.flip(0)[0], *[one.sum() for one in list(y)[:1]]),
    "slices": lambda m, x, y, w: m.linear(x[:-1] if len(x) > 1 else x).sum(0) + sum(x[0:].unbind(0), m.bias),
    "axes": lambda m, x, y, w: (x.unsqueeze(1) * 2).squeeze(1).sum(0) + x[None].squeeze(0).sum(0) + y[None][0].sum(0),
    "recurrent": mean_of_states,
    "batch of one": lambda m, x, y, w: m.lstm(x[None])[0][0].sum(0) + m.lstm(x.unsqueeze(0))[0].squeeze(0).sum(0),
    "gru": lambda m, x, y, w: m.gru(torch.relu(x))[0].sum(0) + m.gru(x.unsqueeze(1))[0].squeeze(1).mean(0),
    "loss": lambda m, x, y, w: F.cross_entropy(m.linear(x), w % SIZE),
    "losses": lambda m, x, y, w: F.cross_entropy(y, w % SIZE, reduction="sum"),
    "without gradients": lambda m, x, y, w: (stopped(lambda: m.linear(x)) * y).sum(0) + stopped(lambda: x[0]),
    "padding": lambda m, x, y, w: m.padded(w).sum(0),
    "of a tensor": lambda m, x, y, w: m.linear(torch.ones(len(w), SIZE, **FLOAT) * w[:, None]).sum(0),
    "dropout": lambda m, x, y, w: F.dropout(x, 0.0).sum(0) + F.dropout(y, 0.5, False).sum(0),
}  # fmt: skip
# What needs the whole.
WHOLE = {
    "packed": lambda m, x, y, w: m.lstm(nn.utils.rnn.pack_padded_sequence(x[None], [len(w)], True))[0].data.sum(0),
    "a target of rows": lambda m, x, y, w: F.cross_entropy(x.view(len(w), SIZE), y.softmax(1)),
    "attention": lambda m, x, y, w: torch.softmax(x @ y.t() / 2, 1) @ y,
    "over columns": lambda m, x, y, w: (
        x.sum(1),
        x.sum(),
        x.mean(),
        x.max(0).values,
        y.amax(1),
        x.sum(0, keepdim=True),
    ),
    "shapes": lambda m, x, y, w: (x.view(-1), y.t(), x.reshape(2, -1), x.expand(2, -1, -1), x.transpose(0, 1), x[:, 0]),
    "other indices": lambda m, x, y, w: (x[[0]], x[..., 0], x[x > 0], y[torch.tensor([0, 0])], x[-1, 2], x[None, 0]),
    "comparisons": lambda m, x, y, w: torch.where(x > y, x, y) + x.maximum(y) + (x == y) * x + x.masked_fill(y < 0, 1),
    "with matrices": lambda m, x, y, w: (x + torch.ones(len(x), 1, **FLOAT) * y[:, :1], x * y.sum(1)[:, None], 1 - x),
    "written": lambda m, x, y, w: written(x * 1) + written(torch.stack([one * 2 for one in y])),
    "written by name": lambda m, x, y, w: (x * 1).mul_(2).add_(y) + (y * 1).relu_() + F.relu(x * 1, inplace=True),
    "one axis more": lambda m, x, y, w: (torch.stack([x, y]), torch.cat([x, torch.ones(1, SIZE, **FLOAT)]), x[None]),
    "returned": lambda m, x, y, w: {"x": x, "y": [y, x[None]]},
    "asked": lambda m, x, y, w: x * x.size(0) + x.dim() + len(y) + x.shape[1] + x.numel() + y.size()[0] + x.ndim,
    "reads": lambda m, x, y, w: x * 2 if x.sum() > 0 else y * float(x[0, 0]) + y.argmax().item(),
    "views of the whole": lambda m, x, y, w: (x.view(-1)[0] + x[0].sum(), x.clone(), x.detach() + y, x.contiguous()),
    "masks": lambda m, x, y, w: (torch.where(x > 0, x, y), (x > y) * y, x.masked_fill(x > y, 0.5), (x > 0) * (y > 0)),
    "weights": lambda m, x, y, w: F.cross_entropy(
        x, w % SIZE, weight=torch.arange(SIZE, **FLOAT) + 1, reduction="none"
    ),
}


def stopped(function):
    with torch.no_grad():
        return function()


def written(x):
    x += 1
    x[:] if len(x) > 99 else None
    x *= 2
    return x + x.tanh()


@pytest.mark.filterwarnings("ignore")  # PyTorch's, where a number is read
@pytest.mark.parametrize("name", [*BY_ROWS, *WHOLE])
def test_functions_of_rows(name):
    compared(Rows((BY_ROWS | WHOLE)[name]), sentences(*LENGTHS))


@pytest.mark.parametrize("name", BY_ROWS)
def test_rows_of_all_samples_run_together(name):
    """Of sentences of other lengths there are hardly more types."""
    types = []
    for lengths in ((3, 3, 3, 3), (2, 3, 4, 5)):
        module = Batched(Rows(BY_ROWS[name]))
        module(sentences(*lengths))
        types.append(module.last.report().types)
    assert types[1] <= types[0] + 1


def test_what_is_written_to_has_no_views():
    for function in (
        lambda m, x, y, w: (x[0], x.add_(1)),
        lambda m, x, y, w: (x.unbind(), written(x)),
        lambda m, x, y, w: (x[None], written(x)),
        lambda m, x, y, w: written(x[0]),
        lambda m, x, y, w: (x.unsqueeze(1), written(x)),
        lambda m, x, y, w: (x[1:], written(x)),
    ):
        with pytest.raises(eb.EdBatchError, match="where the tensor has views, or is one"):
            Batched(Rows(function))(sentences(3))
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        Batched(Rows(lambda m, x, y, w: x[3]))(sentences(3))
    with pytest.raises(IndexError, match="Dimension out of range"):
        Batched(Rows(lambda m, x, y, w: x.softmax(2)))(sentences(3))


def test_rows_replayed():
    for name in ("recurrent", "batch of one", "loss", "axes", "attention", "returned"):
        model = Rows(BY_ROWS.get(name) or WHOLE[name])
        module = Batched(model, replay=True)
        for _ in range(2):
            for ours, words in zip(module(sentences(*LENGTHS)), sentences(*LENGTHS), strict=True):
                torch.testing.assert_close(ours, model(words))


class CaseOfRows(Case):
    """The same where tensors are known by their rows."""

    def given(self, scale):
        return {name: torch.stack(list(x)) if name in "mnktu" else x for name, x in super().given(scale).items()}


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
@pytest.mark.parametrize("code", [code for code in CASES if re.search(r"\b[mnktu]\b", code)][::3])
def test_cases_of_rows(code):
    compared(CaseOfRows(code), [1.0, -0.7])
