"""What a cell reads of parameters and of collections of them: it sees changes, or is refused."""

import copy
import gc
import pickle
import weakref

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


def value_of(call, cells):
    with eb.options(cells=cells), eb.Graph(policy="depth"):
        return call(eb.input([0.3, -0.2])).value()


@pytest.mark.parametrize("read", READS)
def test_changes_are_seen(read):
    m = Model()
    m.a.rate = m.b.rate = 1.0

    @eb.cell
    def step(x):
        return x * eb.sum([eb.sum(part) for part in [1.0, *READS[read](m)]])

    found = [value_of(step, True)]
    for change in CHANGES.values():
        change(m)
        found.append(value_of(step, True))
        np.testing.assert_allclose(found[-1], value_of(step, False), rtol=1e-6)
    assert len({x.tobytes() for x in found}) > 1


def test_penalties_of_what_is_trained():
    model = eb.ParameterCollection()
    model.add_parameters(2, name="a", init=3.0)
    b = model.add_parameters(2, name="b", init=5.0)

    @eb.cell
    def penalty():
        return eb.sum([eb.sum(eb.square(p)) for p in model if not p.frozen])

    def now():
        with eb.Graph():
            return penalty().value().item()

    found = [now()]
    b.freeze()
    found.append(now())
    model.add_parameters(2, name="c", init=1.0)
    found.append(now())
    b.freeze(False)
    found.append(now())
    assert found == [68, 18, 20, 70]


@pytest.mark.parametrize(
    "read",
    {
        "has_grad": lambda p: 1.0 if p.has_grad else 2.0,
        "gradient_array": lambda p: float(p.gradient_array()[0, 0]),
        "gradient_rows": lambda p: 1.0 if p.gradient_rows() is None else 2.0,
        "grad": lambda p: float(p.grad()[0, 0]),
        "value": lambda p: float(p.value()[0, 0]),
        "sparse_grad": lambda p: 1.0 if p.sparse_grad() is None else 2.0,
    }.items(),
    ids=lambda item: item[0],
)
@pytest.mark.parametrize("kind", ["add_parameters", "add_lookup_parameters"])
def test_what_changes_with_each_step_is_refused(kind, read):
    name, function = read
    p = getattr(eb.ParameterCollection(), kind)((2, 2), name="W", init=1.0)
    if not hasattr(p, name):
        return

    @eb.cell
    def step(x):
        return x * function(p)

    with eb.Graph(), pytest.raises(eb.EdBatchError, match=rf"cell .*step: it reads a value, by .*\.{name}; .*argument"):
        step(eb.ones(2))


def test_what_is_added_elsewhere_is_not_compiled_again():
    model = eb.ParameterCollection()
    model.add_parameters(2, name="part.a", init=1.0)

    @eb.cell
    def step(x):
        return x * sum([eb.sum(p) for p in model.sub("part")], 0.0)

    for number in range(3):
        model.add_parameters(2, name=f"other.{number}")
        value_of(step, True)
    assert len(step.compiled()) == 1


def test_a_trace_keeps_no_model():
    class Net:
        pass

    net = Net()

    @eb.cell
    def step(x):
        return x * sum([eb.sum(p) for p in net.model if not p.frozen and p.name in net.model], 0.0)

    for factor in (1.0, 2.0):
        net.model = eb.ParameterCollection()
        one = net.model.add_parameters(1, init=factor)
        np.testing.assert_allclose(value_of(step, True), np.array([0.3, -0.2]) * factor, rtol=1e-6)
        held = weakref.ref(one)
    net.model = one = None
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_of_collections_list_what_is_added_to_them(copied):
    model = eb.ParameterCollection()
    model.add_parameters(2, name="a")
    assert list(model.keys()) == ["a"]
    other = copied(model)
    other.add_parameters(2, name="b")
    assert list(model.keys()) == ["a"]
    assert list(other.keys()) == ["a", "b"]
