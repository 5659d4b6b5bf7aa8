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


def test_before_the_first_call():
    @eb.cell
    def function(x):
        return x + 1

    for ask in (function.layout, function.explain):
        with pytest.raises(eb.EdBatchError, match="function has not been traced yet; call it once"):
            ask()


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


def test_what_is_said_of_operands():
    model = eb.ParameterCollection()
    owner = Step(model, 2, "a")
    with eb.Graph():
        owner.step(eb.ones(2), eb.zeros(2))
    rows = {(row["batch"], row["operand"]): row for row in owner.step.compiled(owner)[0][1].operands}
    assert rows["matmul x2", "0"]["reached"] == "contiguous"
    assert rows["matmul x2", "1"]["reached"] == "broadcast"
    assert rows["concatenate", "parts"]["variables"] == "y, x"
    assert {row["bytes"] for row in rows.values()} == {0}


def test_copies_are_said_with_bytes_and_reasons():
    @eb.cell
    def function(x, y):
        return eb.exp(eb.concatenate([x, x])), eb.exp(eb.concatenate([x, y], axis=0))

    @eb.cell
    def matrices(x, y):
        return eb.exp(eb.concatenate([x, y], axis=1))

    with eb.Graph():
        function(eb.ones(3), eb.ones(3))
        matrices(eb.ones((2, 2)), eb.ones((2, 2)))
    copied = [row for row in function.compiled()[0][1].operands if row["bytes"]]
    assert [(row["reached"], row["bytes"], row["stopped by"]) for row in copied] == [
        ("gathered", 24, "it has a part twice")
    ]
    copied = [row for row in matrices.compiled()[0][1].operands if row["bytes"]]
    assert [(row["bytes"], row["stopped by"]) for row in copied] == [(32, "its parts alternate in memory")]
    assert "copy" in matrices.layout()


def test_what_was_switched_off_is_named():
    @eb.cell
    def function(x):
        return eb.exp(x) * 2

    with eb.options(compile="plain"), eb.Graph():
        function(eb.ones(3))
    assert function.layout().splitlines()[0].endswith("function([3]) without passes")
