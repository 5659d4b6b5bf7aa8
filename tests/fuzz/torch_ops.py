"""The same ops in PyTorch."""

import numpy as np


def TORCH(torch):
    """By name: a function of tensors, shapes of its operands, and what the oracle is given besides."""
    f, one, two = torch.nn.functional, [(2, 3)], [(2, 3), (3,)]
    unary = {
        "neg": torch.neg, "abs": torch.abs, "square": torch.square, "sqrt": torch.sqrt, "exp": torch.exp,
        "log": torch.log, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "gelu": f.gelu,
        "silu": f.silu, "softplus": f.softplus, "softsign": f.softsign, "log_sigmoid": f.logsigmoid, "erf": torch.erf,
        "erfc": torch.erfc,
        "sin": torch.sin, "cos": torch.cos,
    }  # fmt: skip
    comparisons = {
        "greater": "gt",
        "greater_equal": "ge",
        "less": "lt",
        "less_equal": "le",
        "equal": "eq",
        "not_equal": "ne",
    }

    def compared(name):
        return lambda a, b: getattr(torch, comparisons[name])(a, b) + 0 * (a + b)  # which has a gradient: zeros

    binary = {
        "add": torch.add, "subtract": torch.subtract, "multiply": torch.multiply, "divide": torch.divide,
        **{name: compared(name) for name in comparisons}, "power": torch.pow,
        "maximum": torch.maximum, "minimum": torch.minimum,
    }  # fmt: skip
    axes = {
        "sum": lambda x: x.sum(1), "mean": lambda x: x.mean(1), "std": lambda x: x.std(1, correction=0),
        "max": lambda x: x.amax(1), "min": lambda x: x.amin(1), "logsumexp": lambda x: x.logsumexp(1),
        "norm": lambda x: torch.linalg.vector_norm(x, dim=1), "softmax": lambda x: x.softmax(1),
        "log_softmax": lambda x: x.log_softmax(1),
    }  # fmt: skip
    lists = {
        "sum_list": lambda *xs: torch.stack(xs).sum(0), "mean_list": lambda *xs: torch.stack(xs).mean(0),
        "logsumexp_list": lambda *xs: torch.stack(xs).logsumexp(0),
        "maximum_list": lambda *xs: torch.stack(xs).amax(0), "minimum_list": lambda *xs: torch.stack(xs).amin(0),
    }  # fmt: skip
    label = torch.tensor(2)
    return {
        **{name: (function, one, ()) for name, function in unary.items()},
        **{name: (function, two, ()) for name, function in binary.items()},
        **{name: (function, one, (1,)) for name, function in axes.items()},
        **{name: (function, [(3,)] * 4, ()) for name, function in lists.items()},
        "leaky_relu": (lambda x: f.leaky_relu(x, 0.25), one, (0.25,)),
        "elu": (lambda x: f.elu(x, 0.5), one, (0.5,)),
        "where": (lambda c, a, b: torch.where(c != 0, a, b) + 0 * c, [(2, 3), (3,), (2, 3)], ()),
        "clip": (lambda x: torch.clip(x, -0.5, 1.0), one, (-0.5, 1.0)),
        "argmax": (lambda x: x.argmax(1) + 0 * x.sum(1), one, (1,)),
        "argmin": (lambda x: x.argmin() + 0 * x.sum(), one, ()),
        "gather": (lambda x: x.gather(1, torch.tensor([[2, 0], [1, 1]])), one, ([[-1, 0], [1, 1]], 1)),
        "scatter": (
            lambda x: x.scatter(0, torch.tensor([[1, 0]]), torch.tensor([[5.0, 6.0]], dtype=x.dtype)),
            one,
            (np.array([[1, 0]]), np.array([[5.0, 6.0]]), 0),
        ),
        "scatter_add": (
            lambda x: x.scatter_add(1, torch.tensor([[1, 1]]), torch.tensor([[5.0, 6.0]], dtype=x.dtype)),
            one,
            (np.array([[1, 1]]), np.array([[5.0, 6.0]]), 1),
        ),
        "cumsum": (lambda x: x.cumsum(1), one, (1,)),
        "k_max_pool": (lambda x: x.gather(1, x.topk(2, 1).indices.sort(1).values), one, (2, 1)),
        "pad": (lambda x: f.pad(x, (1, 2, 1, 2), value=0.5), one, ((1, 2), 0.5)),
        "unfold": (lambda x: f.unfold(x[None], (2, 1), (1, 2), 1, 2)[0], [(2, 3, 4)], ((2, 1), (1, 2), 1, 2)),
        "max_pool1d": (lambda x: f.max_pool1d(x, 3, 2, 1, 2), [(2, 7)], (3, 2, 1, 2)),
        "max_pool2d": (lambda x: f.max_pool2d(x, (2, 3)), [(2, 5, 7)], ((2, 3),)),
        "avg_pool1d": (lambda x: f.avg_pool1d(x[None], 2, 3)[0], [(2, 7)], (2, 3)),
        "avg_pool2d": (lambda x: f.avg_pool2d(x, 3, 1, 1), [(2, 4, 3)], (3, 1, 1)),
        "conv1d": (f.conv1d, [(2, 7), (3, 2, 3)], ()),
        "conv2d": (f.conv2d, [(2, 4, 5), (3, 2, 2, 3)], ()),
        "matmul": (torch.matmul, [(2, 3), (3, 4)], ()),
        "affine": (lambda W, x, b: W @ x + b, [(2, 3), (3,), (2,)], ()),
        "dot": (torch.dot, [(3,), (3,)], ()),
        "layer_norm": (lambda x, g, b: f.layer_norm(x, (3,), g, b, 0.125), [(2, 3), (3,), (3,)], (0.125,)),
        "cross_entropy": (lambda x: f.cross_entropy(x, label), [(4,)], (2,)),
        "hinge": (lambda x: 4 * f.multi_margin_loss(x, label, margin=0.5), [(4,)], (2, 0.5)),
        "binary_cross_entropy": (lambda p, t: f.binary_cross_entropy(p, t, reduction="sum"), [(3,), (3,)], ()),
        "squared_distance": (lambda a, b: f.mse_loss(a, b, reduction="sum"), [(3,), (3,)], ()),
        "l1_distance": (lambda a, b: f.l1_loss(a, b, reduction="sum"), [(3,), (3,)], ()),
        "huber": (lambda a, b: f.huber_loss(a, b, reduction="sum", delta=0.5), [(3,), (3,)], (0.5,)),
        "concatenate": (lambda *xs: torch.cat(xs, 0), [(2, 3), (1, 3)], ()),
        "stack": (lambda *xs: torch.stack(xs, 0), [(2, 3), (2, 3)], ()),
        "index": (lambda x: x[1, :2], one, ((1, slice(0, 2)),)),
        "reshape": (lambda x: x.reshape(3, 2), one, ((3, 2),)),
        "transpose": (lambda x: x.permute(2, 0, 1), [(2, 3, 4)], ((2, -3, 1),)),
        "flip": (lambda x: torch.flip(x, (1,)), one, (1,)),
    }
