"""`cell.layout()` and `cell.explain()`: for functions and methods, before and after a call, for several owners."""

import gc

import pytest

import edbatch as eb


class Step:
    def __init__(self, model, d, name):
        self.W, self.V = (model.add_parameters((d, d), name=f"{name}.{which}") for which in "WV")

    @eb.cell
    def step(self, x, y):
        """One step."""
        e = eb.concatenate([y, x])
        return eb.tanh(self.W @ x) * eb.tanh(self.V @ x) + eb.sum(e)


def test_a_function():
    @eb.cell
    def function(x):
        return eb.exp(x) * 2

    with eb.Graph():
        function(eb.ones(3))
        function(eb.ones((2, 2)))
    text = function.layout()
    assert repr(text) == str(text)
    assert text.count("argument") == 2  # one per tuple of shapes
    assert "function([3])" in text.splitlines()[0]
    assert "2 batches, no fewer are possible" in function.explain()


def test_methods_bound_and_not():
    model = eb.ParameterCollection()
    one, other = Step(model, 2, "one"), Step(model, 3, "other")
    with eb.Graph():
        for owner, d in ((one, 2), (other, 3)):
            owner.step(eb.ones(d), eb.zeros(d))
    assert one.step.layout() == Step.step.layout() == other.step.layout()
    assert "one.W" in one.step.layout()
    assert "other.W" in one.step.layout()
    assert "other.W" not in one.step.layout(one)
    assert "one.W|one.V" in one.step.layout(one) or "one.V|one.W" in one.step.layout(one)
    with pytest.raises(eb.EdBatchError, match="not been traced"):
        Step.step.explain(Step(model, 4, "third"))
    del other, owner
    gc.collect()
    assert "other.W" not in one.step.layout()
    assert Step.step.__doc__ == "One step."
