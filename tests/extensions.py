"""What docs/extending.md shows, block by block: ops, a policy and an optimizer that EdBatch does not have."""

from dataclasses import dataclass

import numpy as np

import edbatch as eb
from edbatch.graph.list_callers import over_lists, variadic
from edbatch.graph.op import Op, Sample, composite, declare, expect
from edbatch.graph.op_callers import binary, recorded
from edbatch.graph.ops.declaring import broadcast_shape
from edbatch.graph.ops.elementwise import greater
from edbatch.graph.ops.segments import segment_softmax, segment_sum
from edbatch.graph.record import checked_number, record
from edbatch.policy.schedule import Schedule
from edbatch.training.rule import Rule
from edbatch.training.trainer import Trainer

SOFT_CAP = declare(
    Op(
        "soft_cap",
        lambda shape, limit: shape,
        elementwise=True,
        scalar="limit * tanh(x / limit)",
        gradient=lambda g, out, x, limit: g * (1 - eb.square(out * (1 / limit))),
        samples=(Sample(((5,),), {"limit": 1.5}), Sample(((2, 3),), {"limit": 0.5})),
    )
)
soft_cap = recorded(SOFT_CAP)(lambda x, limit=1.0: {"limit": checked_number("soft_cap: limit", limit)})

LOG_ADD = declare(
    Op(
        "log_add",
        broadcast_shape,
        elementwise=True,
        scalar="maximum(x, y) + log1p(exp(-abs(x - y)))",
        gradient=lambda g, out, a, b: (g * eb.sigmoid(a - b), g * eb.sigmoid(b - a)),
        samples=(Sample(((4,), (4,))), Sample(((2, 3), (3,))), Sample(((2, 1), (1, 3)))),
    )
)
log_add = binary(LOG_ADD)


def _without(shape, axes):
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _peak_gradient(g, out, x, axes):
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    return eb.reshape(g, kept) * (1 - greater(eb.reshape(out, kept), x))


PEAK = declare(
    Op(
        "peak",
        _without,
        reduction="max",
        gradient=_peak_gradient,
        samples=(Sample(((5,),), {"axes": (0,)}), Sample(((2, 3),), {"axes": (1,)}), Sample(((2, 3),), {"axes": (0,)})),
    )
)
peak = recorded(PEAK)(lambda x, axis=-1: {"axes": (axis % x.ndim,)})

NORM_LIST = declare(
    Op(
        "norm_list",
        lambda shape: shape,
        variadic=True,
        composite=lambda x: eb.sqrt(segment_sum(eb.square(x))),
        samples=(Sample(((3,),) * 4), Sample(((),) * 3), Sample(((2, 2),))),
    )
)
norm_list = variadic(NORM_LIST)


def _additive_shape(query, gain, key, value):
    expect(query == gain == key and len(key) == len(value) == 1, "expected vectors, all but values of one size")
    return value


def _additive(query, gain, key, value):
    weight = segment_softmax(eb.dot(gain, eb.tanh(key + query)))
    return segment_sum(weight * value)


ADDITIVE_ATTENTION = declare(
    Op(
        "additive_attention",
        _additive_shape,
        variadic=True,
        singles=2,
        composite=_additive,
        samples=(Sample(((3,), (3,), (3,), (2,))),),
    )
)


def additive_attention(query, gain, keys, values):
    """Attention with scores gain . tanh(key + query) (Bahdanau et al. 2015)."""
    return over_lists(ADDITIVE_ATTENTION, (query, gain), (keys, values))


def _rms_norm_shape(x, gain, epsilon):
    expect(len(x) > 0 and gain == x[-1:], "expected a gain of the size of the last axis")
    return x


def _rms_norm(x, gain, epsilon):
    return x / eb.sqrt(eb.mean(eb.square(x), -1, keepdims=True) + epsilon) * gain


RMS_NORM = composite(
    "rms_norm",
    _rms_norm_shape,
    _rms_norm,
    (Sample(((4,), (4,)), {"epsilon": 1e-5}), Sample(((2, 4), (4,)), {"epsilon": 1e-3})),
)


def rms_norm(x, gain, epsilon=1e-5):
    """x divided by the root of the mean of its squares over the last axis, times a gain."""
    return record(RMS_NORM, (x, gain), epsilon=checked_number("rms_norm: epsilon", epsilon))


@eb.foreign(out=lambda values, k: (k,))
def moments(values, k=2):
    """The means of the powers 1 to k of all entries."""
    return np.stack([np.mean(values**power, axis=tuple(range(1, values.ndim))) for power in range(1, k + 1)], axis=1)


@moments.gradient
def moments_gradient(gradient, values, result, k):
    back = np.zeros_like(values)
    for power in range(1, k + 1):
        of_each = gradient[:, power - 1] * power / values[0].size
        back += of_each.reshape(-1, *[1] * (values.ndim - 1)) * values ** (power - 1)
    return back


class Measured(eb.Expression):
    """An expression with the methods that another library's arrays have."""

    __slots__ = ()

    def norm(self):
        return eb.sqrt(eb.sum(eb.square(self)))


def norms(vectors):
    with eb.Graph(expression_class=Measured):
        found = [eb.input(x).norm() for x in vectors]
    return eb.forward(found)


class MostReady:
    """Of all types, the one with the most nodes that are ready."""

    name = "most-ready"

    def schedule(self, graph):
        waiting = np.diff(graph.indptr)
        users = graph.successors
        ready = [[] for _ in graph.names]
        for node in np.flatnonzero(waiting == 0):
            ready[graph.types[node]].append(node)
        batches, types = [], []
        while any(ready):
            type = max(range(len(ready)), key=lambda one: len(ready[one]))
            batch, ready[type] = ready[type], []
            batches.append(batch)
            types.append(type)
            for node in batch:
                for user in users.nodes[users.indptr[node] : users.indptr[node + 1]]:
                    waiting[user] -= 1
                    if not waiting[user]:
                        ready[graph.types[user]].append(user)
        offsets = np.cumsum([0, *map(len, batches)])
        return Schedule(np.array([node for batch in batches for node in batch], np.int32), offsets, np.array(types))

    def save(self, path):
        raise eb.EdBatchError(f"policy {self.name!r} has no file")


@dataclass(eq=False, kw_only=True)
class Lion(Trainer):
    """Steps of one size, by the sign of a mean of gradients (Chen et al. 2023)."""

    beta1: float = 0.9
    beta2: float = 0.99

    rule = Rule(
        slots=("mean",),
        constants=("scale", "lr", "decay", "beta1", "beta2"),
        body="""
d = scale * g
c = beta1 * mean + (1 - beta1) * d
p = p - lr * ((1 if c > 0 else 0) - (1 if c < 0 else 0) + decay * p)
mean = beta2 * mean + (1 - beta2) * d
""",
    )

    def constants(self, lr, updates):
        return {"lr": lr, "decay": self.weight_decay, "beta1": self.beta1, "beta2": self.beta2}
