"""What is read of parameters and of collections of them: changes are seen, or it is refused."""

import copy
import pickle

import numpy as np
import pytest

import edbatch as eb


class Model:
    """A collection with a part, and cells that read it in one way each."""

    def __init__(self):
        self.all = eb.ParameterCollection(seed=0)
        self.a = self.all.add_parameters(2, name="a", init=3.0)
        self.b = self.all.add_parameters(2, name="part.b", init=5.0)
        self.part = self.all.sub("part")


READS = {
    "iteration": lambda m: [eb.sum(p) for p in m.all],
    "iteration over a part": lambda m: [eb.sum(p) for p in m.part],
    "a part made inside": lambda m: [eb.sum(p) for p in m.all.sub("part")],
    "values": lambda m: [eb.sum(p) for p in m.part.values()],
    "items": lambda m: [eb.sum(p) * len(name) for name, p in m.all.items()],
    "keys": lambda m: [len("".join(m.all.keys()))],
    "dict": lambda m: [len(dict(m.part))],
    "star": lambda m: [eb.sum(eb.concatenate([*m.all]))],
    "length": lambda m: [len(m.all), len(list(m.part))],
    "truth": lambda m: [1.0 if m.all.sub("other") else 2.0],
    "contains": lambda m: [1.0 if "part.W" in m.all else 2.0],
    "contains, of a part": lambda m: [1.0 if "W" in m.part else 2.0],
    "count": lambda m: [m.all.count()],
    "count of what is trained": lambda m: [m.all.count(frozen=False)],
    "free name": lambda m: [len(m.part.free_name("W"))],
    "frozen": lambda m: [eb.sum(p) for p in m.all if not p.frozen],
    "frozen, of one": lambda m: [1.0 if m.b.frozen else 2.0],
    "frozen, by name": lambda m: [1.0 if m.part["b"].frozen else 2.0],
    "attributes of what is listed": lambda m: [p.rate for p in m.all if hasattr(p, "rate")],
    "attributes of an item": lambda m: [m.part["b"].rate],
    "representation": lambda m: [len(repr(m.all))],
    "error": lambda m: [_missing(m)],
}


def _missing(m):
    try:
        return eb.sum(m.part["W"])
    except eb.EdBatchError:
        return 1.0


CHANGES = {
    "add": lambda m: [m.part.add_parameters(n, name=name, init=2.0) for n, name in ((2, "W"), (1, "other.V"))],
    "add elsewhere": lambda m: m.all.add_parameters(3, name="other.W", init=1.5),
    "freeze": lambda m: m.b.freeze(),
    "thaw": lambda m: m.all.freeze(False),
    "freeze all": lambda m: m.all.freeze(),
    "set": lambda m: (setattr(m.a, "rate", 2.0), setattr(m.b, "rate", 3.0)),
}


def as_vertices(step):
    function = eb.vertex(lambda v: v.scatter(step(v.pull())))
    return lambda x: function(eb.InputGraph([0, 0], []), eb.array([x])).scattered[0]


def as_replay(step):
    replayed = eb.replay(lambda sample: step(eb.input(sample)))
    return lambda x: replayed((0.3, -0.2))


def value_of(call, cells=True):
    with eb.options(cells=cells), eb.Graph(policy="depth"):
        return call(eb.input([0.3, -0.2])).value()


@pytest.mark.parametrize("kind", [eb.cell, as_vertices, as_replay])
@pytest.mark.parametrize("read", READS)
def test_changes_are_seen(read, kind):
    m = Model()
    m.a.rate = m.b.rate = 1.0

    def step(x):
        return x * eb.sum([eb.sum(part) for part in [1.0, *READS[read](m)]])

    call = kind(step)
    found = [value_of(call)]
    for change in CHANGES.values():
        change(m)
        found.append(value_of(call))
        np.testing.assert_allclose(found[-1], value_of(step, False), rtol=1e-6)
    assert len({x.tobytes() for x in found}) > 1


@pytest.mark.parametrize("kind", [eb.cell, as_replay])
@pytest.mark.parametrize("made", ["add_parameters", "add_lookup_parameters"])
@pytest.mark.parametrize(
    "read",
    [
        lambda p: 1.0 if p.has_grad else 2.0,
        lambda p: float(p.gradient_array()[0, 0]),
        lambda p: float(p.grad()[0, 0]),
        lambda p: float(p.value()[0, 0]),
        lambda p: 1.0 if getattr(p, "sparse_grad", p.grad)() is None else 2.0,
    ],
)
def test_what_changes_with_each_step_is_refused(made, read, kind):
    p = getattr(eb.ParameterCollection(), made)((2, 2), name="W", init=1.0)
    with pytest.raises(eb.EdBatchError, match=r"it reads a value, by .*; .*argument"):
        value_of(kind(lambda x: x * read(p)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_of_collections_list_what_is_added_to_them(copied):
    model = eb.ParameterCollection()
    model.add_parameters(2, name="a")
    assert list(model.keys()) == ["a"]
    other = copied(model)
    other.add_parameters(2, name="b")
    assert list(model.keys()) == ["a"]
    assert list(other.keys()) == ["a", "b"]
