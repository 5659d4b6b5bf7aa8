"""Each class of torch.nn, as a submodule of a module of one sample: beside itself, or refused by name."""

import re

import pytest
import torch
from torch import nn
from torch.nn.utils import rnn  # noqa: F401 (of the rows)
from torch.utils._pytree import tree_leaves

import edbatch as eb
import edbatch.torch
from tests.torch.test_functions import compared

SHAPES = {
    "v": (6,), "w": (6,), "m": (4, 6), "n": (5, 6), "c": (1, 4, 6), "i": (4, 6, 6), "ii": (1, 4, 6, 6),
    "d": (2, 4, 4, 4), "s": (),
}  # fmt: skip

#: A layer, and what is called; tensors are those of SHAPES, of a sample or computed of parameters.
WORKS = """
AdaptiveAvgPool1d(3) -> f(m)
AdaptiveAvgPool2d((2, 3)) -> f(i)
AdaptiveAvgPool3d(1) -> f(d)
AdaptiveMaxPool1d(1) -> f(m)
AdaptiveMaxPool2d(1) -> f(i)
AdaptiveMaxPool3d(1) -> f(d)
AlphaDropout(0.5).eval() -> f(v)
AvgPool1d(2) -> f(m)
AvgPool2d(2) -> f(i)
AvgPool3d(2) -> f(d)
BCELoss() -> f(v.sigmoid(), w.detach().sigmoid())
BCEWithLogitsLoss() -> f(v, w.sigmoid())
BatchNorm1d(6).eval() -> f(m)
BatchNorm2d(4).eval() -> f(ii)
BatchNorm3d(2).eval() -> f(d[None])
Bilinear(6, 6, 3) -> f(v, w)
CELU() -> f(v)
ChannelShuffle(2) -> f(ii)
CircularPad1d(1) -> f(m)
CircularPad2d(1) -> f(i)
CircularPad3d(1) -> f(d)
ConstantPad1d(1, 2.0) -> f(m)
ConstantPad2d(1, 2.0) -> f(i)
ConstantPad3d(1, 2.0) -> f(d)
Conv1d(4, 4, 3, padding="same", padding_mode="reflect", groups=2) -> f(m)
Conv2d(4, 3, 2, padding=1, padding_mode="replicate") -> f(i)
Conv3d(2, 3, 2) -> f(d)
ConvTranspose1d(4, 3, 2) -> f(m)
ConvTranspose2d(4, 3, 2) -> f(i)
ConvTranspose3d(2, 3, 2) -> f(d)
CosineEmbeddingLoss(0.1) -> f(m, m * w, torch.tensor([1, -1, -1, 1]))
CosineSimilarity() -> f(m, w[None])
CrossEntropyLoss() -> f(v, torch.tensor(1))
Dropout(0.5).eval() -> f(v)
Dropout1d(0.5).eval() -> f(m)
Dropout2d(0.5).eval() -> f(i)
Dropout3d(0.5).eval() -> f(d)
ELU() -> f(v)
Embedding(5, 3) -> f(torch.tensor([1, 4])) * s
EmbeddingBag(5, 3) -> f(torch.tensor([[1, 4], [0, 0]])) * s
FeatureAlphaDropout(0.5).eval() -> f(m)
Flatten() -> f(c)
Fold((2, 4), (2, 2)) -> f(torch.cat([m, m])[:, :3])
GELU() -> f(v)
GLU() -> f(v)
GRU(6, 4, 2, bidirectional=True) -> f(m[:, None])
GRU(6, 4, batch_first=True) -> rnn.pad_packed_sequence(f(rnn.pack_sequence([n]))[0], True, 2.0, total_length=7)
GRUCell(6, 4) -> f(v)
GaussianNLLLoss(full=True) -> f(v, w, v.exp())
GroupNorm(2, 4) -> f(c)
Hardshrink() -> f(v)
Hardsigmoid() -> f(v)
Hardswish() -> f(v)
Hardtanh() -> f(v)
HingeEmbeddingLoss() -> f(v, torch.tensor([1, -1, 1, 1, -1, -1]))
HuberLoss() -> f(v, w)
Identity() -> (rnn.pad_sequence([m, n]), rnn.pad_sequence([m, n], True, 1.0, "left"), rnn.pad_sequence([m]))
Identity() -> f(v)
InstanceNorm1d(4) -> f(m)
InstanceNorm2d(4, affine=True, track_running_stats=True).eval() -> f(ii)
InstanceNorm3d(2) -> f(d)
KLDivLoss() -> f(v.log_softmax(0), w.detach().softmax(0))
L1Loss() -> f(v, w)
LPPool1d(2, 2) -> f(m)
LPPool2d(2, 2) -> f(i)
LPPool3d(2, 2) -> f(d)
LSTM(6, 4) -> f(rnn.pack_padded_sequence(m[:, None], torch.tensor([4]), enforce_sorted=False))
LSTM(6, 4, 2, batch_first=True, bias=False, proj_size=3) -> f(m[None])
LSTM(6, 4, 2, bidirectional=True) -> rnn.pad_packed_sequence(f(rnn.pack_padded_sequence(m[None], [3], True))[0])
LSTM(6, 4, proj_size=3, bidirectional=True) -> f(m)
LSTMCell(6, 4) -> f(v)
LayerNorm(6) -> f(m)
LeakyReLU() -> f(v)
Linear(6, 3) -> f(v)
LinearCrossEntropyLoss(6, 3) -> f(m, torch.tensor([0, 1, 2, 0]))
LocalResponseNorm(2) -> f(ii)
LogSigmoid() -> f(v)
LogSoftmax(0) -> f(v)
MSELoss() -> f(v, w)
MarginRankingLoss() -> f(v, w, torch.ones(6))
MaxPool1d(2) -> f(m)
MaxPool2d(2) -> f(i)
MaxPool3d(2) -> f(d)
Mish() -> f(v)
ModuleDict({"a": nn.Linear(6, 2)}) -> f["a"](v)
ModuleList([nn.Linear(6, 2)]) -> f[0](v)
MultiLabelMarginLoss() -> f(v, torch.tensor([3, 0, -1, 1, 1, 1]))
MultiLabelSoftMarginLoss() -> f(m, (m.detach() > 0).to(m.dtype))
MultiMarginLoss(2, 0.5) -> f(m, torch.tensor([2, 0, 5, 1]))
MultiheadAttention(6, 2) -> f(m, m, m, attn_mask=m @ m.t())[0]
MultiheadAttention(6, 2) -> f(m, m, m)
MultiheadAttention(6, 2) -> f(m, m, m, attn_mask=causal(4).to(m), is_causal=True, need_weights=False)
MultiheadAttention(6, 2) -> f(m, n, n * w, torch.arange(5).to(m) / 5, attn_mask=torch.eye(4, 5).to(m))
MultiheadAttention(6, 2) -> f(m, n, n, torch.arange(5) > 3, attn_mask=torch.arange(20).reshape(4, 5) % 3 == 1)
MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True) -> f(m[:, None], n[:, None], n[:, None])
MultiheadAttention(6, 2, bias=False) -> f(m, n, n, need_weights=False)
MultiheadAttention(6, 2, kdim=4, vdim=5) -> f(m, n[:, :4], n[:, :5], torch.arange(5) % 3 == 1)
MultiheadAttention(6, 3, batch_first=True) -> f(m[None], n[None], n[None], average_attn_weights=False)
NLLLoss() -> f(v, torch.tensor(2))
PReLU() -> f(v)
PairwiseDistance(1) -> f(v, w)
ParameterDict({"a": nn.Parameter(torch.ones(6))}) -> f["a"] * v
ParameterList([nn.Parameter(torch.ones(6))]) -> f[0] * v
PixelShuffle(2) -> f(i)
PixelUnshuffle(2) -> f(i)
PoissonNLLLoss() -> f(v, w.detach().abs())
RMSNorm(6) -> f(m)
RNN(6, 4) -> f(m)
RNN(6, 4) -> f(rnn.pack_sequence([n]), torch.zeros(1, 1, 4).to(m))[1]
RNN(6, 4) -> rnn.unpack_sequence(f(rnn.pack_sequence([m]))[0])
RNNCell(6, 4) -> f(v)
RReLU().eval() -> f(v)
ReLU() -> f(v)
ReLU6() -> f(v)
ReflectionPad1d(2) -> f(m)
ReflectionPad2d(2) -> f(i)
ReflectionPad3d(1) -> f(d)
ReplicationPad1d(2) -> f(m)
ReplicationPad2d(2) -> f(i)
ReplicationPad3d(1) -> f(d)
SELU() -> f(v)
Sequential(nn.Linear(6, 3), nn.Tanh()) -> f(v)
SiLU() -> f(v)
Sigmoid() -> f(v)
SmoothL1Loss() -> f(v, w)
SoftMarginLoss() -> f(v, w.detach().sign())
Softmax(0) -> f(v)
Softmax2d() -> f(i)
Softmin(0) -> f(v)
Softplus() -> f(v)
Softshrink() -> f(v)
Softsign() -> f(v)
Tanh() -> f(v)
Tanhshrink() -> f(v)
Threshold(0.1, 20.0) -> f(v)
Transformer(6, 2, 1, 1, 8, 0.0) -> f(m, n)
TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0, batch_first=True), 2) -> f(m[None], n[None])
TransformerDecoderLayer(6, 2, 8, 0.0, norm_first=True) -> f(m, n, causal(4).to(m), tgt_is_causal=True)
TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, nn.LayerNorm(6)) -> f(m[:, None], causal(4).to(m))
TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2).eval() -> f(n[None])
TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), 2).eval() -> f(n[None], None, padding)
TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True) -> f(m)
TransformerEncoderLayer(6, 2, 8, batch_first=True, activation="gelu").eval() -> f(m[None])
TripletMarginLoss(swap=True) -> f(m, m * w, m + w)
TripletMarginWithDistanceLoss() -> f(m, m * w, m + w)
Unflatten(0, (2, 3)) -> f(v)
Unfold(2) -> f(ii)
Upsample(scale_factor=2) -> f(ii)
UpsamplingBilinear2d(scale_factor=2) -> f(ii)
UpsamplingNearest2d(scale_factor=2) -> f(ii)
ZeroPad1d(1) -> f(m)
ZeroPad2d(1) -> f(i)
ZeroPad3d(1) -> f(d)
""".strip().splitlines()

#: The same, and the name that the error has.
REFUSED = """
AdaptiveLogSoftmaxWithLoss(6, 4, [2]) -> f(m, torch.tensor([0, 3, 1, 2])) -> index_copy_
BatchNorm1d(6) -> f(m) -> batch_norm in training
CTCLoss() -> f(m.log_softmax(1), torch.tensor([1, 2]), torch.tensor(4), torch.tensor(2)) -> ctc_loss
CrossMapLRN2d(2) -> f(ii) -> torch.autograd.Function
FractionalMaxPool2d(2, 2) -> f(i) -> fractional_max_pool2d
FractionalMaxPool3d(2, 2) -> f(d) -> fractional_max_pool3d
InstanceNorm1d(4, track_running_stats=True) -> f(m) -> instance_norm with track_running_stats in training
MaxUnpool1d(2) -> f(m, torch.arange(24).reshape(4, 6) % 12) -> max_unpool1d
MaxUnpool2d(2) -> f(i, torch.arange(144).reshape(4, 6, 6)) -> max_unpool2d
MaxUnpool3d(2) -> f(d, torch.arange(128).reshape(2, 4, 4, 4)) -> max_unpool3d
RNN(6, 4) -> f(rnn.pack_sequence([n, m])) -> a packed sequence of several
RReLU() -> f(v) -> rrelu in training
SyncBatchNorm(6) -> f(m) -> batch_norm in training
""".strip().splitlines()

#: That compute nothing themselves; those named Lazy become others when they are first called, outside.
OTHERS = {"Container", "DataParallel", "Module", "NLLLoss2d", "RNNBase", "RNNCellBase"}


class Layer(nn.Module):
    """Calls a layer, with tensors that are parameters times a number."""

    def __init__(self, row):
        super().__init__()
        torch.manual_seed(0)
        made, call, *_ = row.split(" -> ")
        self.layer = eval(f"nn.{made}").double()
        self.call = compile(call, call, "eval")
        for name, shape in SHAPES.items():
            self.register_parameter(name, nn.Parameter(torch.randn(shape, dtype=torch.float64)))

    def forward(self, scale):
        given = {name: getattr(self, name) * scale for name in SHAPES}
        given["padding"] = torch.tensor([[False, False, False, True, True]])
        return eval(self.call, globals(), given | {"f": self.layer})


def known(row):
    """Whether this PyTorch has the class."""
    return hasattr(nn, row.partition("(")[0])


causal = nn.Transformer.generate_square_subsequent_mask


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
@pytest.mark.parametrize("row", [row for row in WORKS if known(row)])
def test_layers(row):
    module = Layer(row)
    compared(module, [1.0, -0.7], rtol=1e-8)  # which constants of PyTorch's are exact to


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", [row for row in REFUSED if known(row)])
def test_refused_layers(row):
    with pytest.raises(eb.EdBatchError, match=row.split(" -> ")[2]):
        edbatch.torch.Batched(Layer(row))([1.0])


def test_every_class_is_listed():
    classes = {name for name, kind in vars(nn).items() if isinstance(kind, type) and issubclass(kind, nn.Module)}
    listed = {re.match(r"\w+", row)[0] for row in WORKS + REFUSED}
    assert {name for name in classes if not name.startswith("Lazy")} <= listed | OTHERS


ATTENTION = [row for row in WORKS if row.startswith(("Multihead", "Transformer"))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ATTENTION)
def test_attention_without_gradients(row):
    """In `eval()` PyTorch has faster ways, which take no lazy tensors."""
    module = Layer(row).eval()
    wanted = [x.detach() for x in tree_leaves(module(1.0)) if x is not None]
    with torch.no_grad():
        found = [x for x in tree_leaves(edbatch.torch.Batched(module)([1.0])) if x is not None]
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_dropout_of_attention():
    model = Layer("TransformerEncoderLayer(6, 2, 8, 0.5) -> f(m)")
    batched = edbatch.torch.Batched(model)

    def drawn(seed):
        torch.manual_seed(seed)
        return torch.stack(batched([1.0, 1.0]))

    first, again, other = drawn(0), drawn(0), drawn(1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])
    model.eval()
    torch.testing.assert_close(drawn(2)[0], model(1.0), rtol=1e-9, atol=1e-9)


def test_layers_of_tensors_of_samples():
    """Tensors that no parameter has met yet."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8, 0.0), nn.Linear(6, 2)).double()
    rows = [torch.randn(length, 6, dtype=torch.float64, requires_grad=True) for length in (3, 5, 1)]
    compared(module, rows)


def test_the_lazy_have_to_be_called_first():
    with pytest.raises(RuntimeError, match="Call `forward` to initialize the parameters"):
        edbatch.torch.Batched(nn.LazyLinear(2))([torch.ones(3)])
