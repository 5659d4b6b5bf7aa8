"""Ops over lists of any length, there and back, against PyTorch in float64, whatever their operands are."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device

torch = pytest.importorskip("torch")

# Per node: its query, and which keys and values it reads: one alone, some twice, all, many.
LISTS = [(0, [0], [1]), (1, [2, 2], [0, 3]), (0, [0, 1, 2, 3], [3, 2, 1, 0]), (2, [1, 3, 0], [1, 1, 1])]
LISTS += [(1, [*range(4)] * 40, [*range(3, -1, -1)] * 40)]
SCALES = {None: None, True: None, False: 1.0, 0.3: 0.3}


def attended(query, keys, values, scale, heads):
    """By PyTorch."""
    q, k, v = (
        query.reshape(heads, 1, -1),
        *(torch.stack(x).reshape(len(x), heads, -1).transpose(0, 1) for x in (keys, values)),
    )
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=SCALES[scale]).reshape(-1)


def ours(queries, keys, values, scale, heads, how):
    """Losses and what their gradients are asked of."""
    if how == "views":  # slices of wider rows, columns of a matrix
        sources = [eb.input(np.stack(queries)), eb.input(np.stack(keys, axis=1)), eb.input(np.concatenate(values))]
        qs = [sources[0][at] for at in range(len(queries))]
        ks = [eb.transpose(sources[1])[at] for at in range(len(keys))]
        size = len(values[0])
        vs = [sources[2][at * size : (at + 1) * size] for at in range(len(values))]
    else:
        sources = [eb.input(x) for x in (*queries, *keys, *values)]
        qs, ks, vs = sources[: len(queries)], sources[len(queries) : -len(values)], sources[-len(values) :]
    if how == "several types":
        ks, vs = [eb.neg(eb.neg(k)) if at % 2 else k for at, k in enumerate(ks)], [v + 0 for v in vs]
    if how == "stopped":
        ks[1], vs[2], qs[1] = eb.stop_gradient(ks[1]), eb.stop_gradient(vs[2]), eb.stop_gradient(qs[1])
    if how == "stopped keys":
        ks = [eb.stop_gradient(k) for k in ks]
    ys = [
        eb.attention(qs[q], [ks[i] for i in some], [vs[i] for i in others], scale=scale, heads=heads)
        for q, some, others in LISTS
    ]
    return ys, sources


def want(queries, keys, values, scale, heads, how, flowing):
    """The same by PyTorch, in float64."""
    made = [[torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in xs] for xs in (queries, keys, values)]
    qs, ks, vs = map(list, made)
    if how == "stopped":
        ks[1], vs[2], qs[1] = ks[1].detach(), vs[2].detach(), qs[1].detach()
    if how == "stopped keys":
        ks = [k.detach() for k in ks]
    ys = [attended(qs[q], [ks[i] for i in some], [vs[i] for i in others], scale, heads) for q, some, others in LISTS]
    sum((torch.sin(y) * (at + 1)).sum() for at, y in enumerate(ys) if flowing(at)).backward()
    grads = [[np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in xs] for xs in made]
    if how == "views":
        return ys, [np.stack(grads[0]), np.stack(grads[1], axis=1), np.concatenate(grads[2])]
    return ys, [x for xs in grads for x in xs]


def check(where, how="nodes", dtype="float64", policy="sufficient", scale=None, heads=1, flowing=lambda at: True):
    random = np.random.default_rng(heads)
    queries, keys = ([random.normal(size=4) for _ in range(n)] for n in (3, 4))
    values = [random.normal(size=6) for _ in range(4)]
    given = [[x.astype(dtype) for x in xs] for xs in (queries, keys, values)]
    with where, eb.Graph(policy=policy, dtype=dtype):
        ys, sources = ours(*given, scale, heads, how)
        eb.sum([eb.sum(eb.sin(y) * (at + 1)) for at, y in enumerate(ys) if flowing(at)]).backward()
        found = [[x.value() for x in ys], [x.gradient() for x in sources]]
    exact = want(*given, scale, heads, how, flowing)
    tolerance = {"rtol": 2e-4, "atol": 2e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-10}
    for got, theirs in zip([*found[0], *found[1]], [*exact[0], *exact[1]], strict=True):
        np.testing.assert_allclose(got, np.asarray(theirs.detach() if torch.is_tensor(theirs) else theirs), **tolerance)


HOW = ["nodes", "views", "several types", "stopped", "stopped keys"]


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("how", HOW)
def test_values_and_gradients(how, dtype):
    for policy in ("sufficient", "none"):
        check(device("cpu"), how, dtype, policy)
    check(device("cpu"), how, dtype, flowing=lambda at: at % 2)


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("heads", [1, 2])
def test_heads_and_scales(heads, scale):
    check(device("cpu"), scale=scale, heads=heads)


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("how", HOW)
def test_an_emulated_gpu_gives_the_same(cuda, how, dtype):
    for heads in (1, 2):
        check(cuda, how, dtype, heads=heads)
    check(cuda, how, dtype, flowing=lambda at: at % 2)


@pytest.mark.parametrize("how", ["rows", "columns"])
def test_nan_is_found_where_it_comes_from(how):
    with eb.Graph(policy="sufficient", check_nan=True), np.errstate(all="ignore"):
        x = eb.input(np.eye(3))
        rows = [x[at] if how == "rows" else x.T[at] for at in range(3)]
        eb.sum(eb.attention(rows[0], rows, rows) * np.inf).backward()
        with pytest.raises(eb.EdBatchError, match="NaN in the gradient of attention"):
            x.gradient()
    with eb.Graph(policy="sufficient", check_nan=True):
        x = eb.input([np.inf, 1.0])
        with pytest.raises(eb.EdBatchError, match="NaN in a result of attention"):
            eb.attention(x, [x, x], [x, x]).value()
