"""What all optimizers share: which parameters are updated, clipping, bad gradients, state."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edbatch as eb
from edbatch.graph.cell.stacking import stacked
from tests.arrays import beside
from tests.training.optimizing import give, gradients_of, model_of


def test_gradients_whose_squares_overflow_are_clipped(model):
    trainer = eb.SGD(model, lr=1.0, clip=1.0)
    model["W"].accumulator()[0][...] = 1e30
    trainer.update()
    np.testing.assert_allclose(model["W"].value(), np.full((2, 3), 1 - 1 / np.sqrt(6)), rtol=1e-6)
    assert trainer.gradient_norm == pytest.approx(1e30 * np.sqrt(6), rel=1e-6)


@pytest.mark.parametrize(("name", "bad"), [("W", np.nan), ("b", np.inf), ("V", -np.inf), ("table", np.nan)])
def test_bad_gradients_raise(name, bad):
    model = model_of()
    trainer = eb.Adam(model)
    values = {parameter.name: parameter.value() for parameter in model}
    gradients = next(gradients_of(model))
    gradients[name][~np.isnan(gradients[name])] = bad  # of the table only rows that have a gradient
    if name == "table":
        gradients[name][0] = 1.0, bad
    give(model, gradients)
    with pytest.raises(eb.EdBatchError, match=rf"Adam.update: NaN or infinite gradient of '{name}' after 0 updates"):
        trainer.update()
    for parameter in model:
        np.testing.assert_array_equal(parameter.value(), values[parameter.name])
        assert parameter.has_grad  # to look at
    assert (trainer.steps, trainer.skipped) == (0, 0)
    assert trainer.state()[0] == {}


def test_bad_gradients_are_skipped_and_counted():
    model, good = model_of(), model_of()
    trainer, peer = eb.Momentum(model, on_bad_gradient="skip"), eb.Momentum(good)
    for number, gradients in enumerate(gradients_of(model)):
        bad = number in (1, 3)
        if not bad:
            give(good, gradients)
            peer.update()
        give(model, {**gradients, "W": np.full((3, 4), np.nan)} if bad else gradients)
        if number == 1:
            with pytest.warns(eb.EdBatchWarning, match="gradient of 'W' after 1 updates; such updates are skipped"):
                trainer.update()
        else:
            trainer.update()  # warns once
        assert not any(parameter.has_grad for parameter in model)
        for parameter in model:
            np.testing.assert_array_equal(parameter.value(), good[parameter.name].value())
    assert (trainer.steps, trainer.skipped) == (4, 2)


@pytest.mark.cpu
def test_parameters_may_be_stacked_between_updates():
    """Cells stack parameters when they are first called; what was remembered must come along."""
    results = []
    for when in (0, 2, None):
        model = eb.ParameterCollection(seed=3)
        ps = [model.add_parameters((n, 4), name=f"W{n}") for n in (2, 3)]
        bs = [model.add_parameters((n,), name=f"b{n}") for n in (2, 3)]
        trainer = eb.AMSGrad(model, lr=0.1)
        random = np.random.default_rng(0)
        for step in range(4):
            if step == when:
                assert stacked([p.spec for p in ps]) is not None
                assert stacked([b.spec for b in bs]) is not None
            for p in model:
                p.accumulator()[0][...] = random.standard_normal(p.shape)
            trainer.update()
        arrays, numbers = trainer.state()
        results.append(([p.value() for p in model], arrays, numbers))
    for values, arrays, numbers in results[1:]:
        for got, want in zip(values, results[0][0], strict=True):
            np.testing.assert_array_equal(got, want)
        assert arrays.keys() == results[0][1].keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, results[0][1][name])
        assert numbers == results[0][2]


@pytest.mark.parametrize("optimizer", [eb.Momentum, eb.Adadelta, eb.AMSGrad])
def test_a_run_goes_on_from_its_state(optimizer):
    model = model_of()
    trainer = optimizer(model)
    for number, gradients in enumerate(gradients_of(model)):
        if number == 3:
            model = copy.deepcopy(model)  # parameters of their own, not stacked
            arrays, numbers = trainer.state()
            other = optimizer(model)
            assert other.differences(arrays, numbers) == {}
            other.load_state(arrays, numbers)
            previous, trainer = trainer, other
        for each in {trainer} if number < 3 else (previous, trainer):
            give(each.model, gradients)
            each.update()
    assert trainer.steps == previous.steps == 6
    for parameter in model:
        np.testing.assert_array_equal(parameter.value(), previous.model[parameter.name].value())
    for name, array in trainer.state()[0].items():
        np.testing.assert_array_equal(array, previous.state()[0][name])


def test_copies_and_pickles_go_on_with_a_model_of_their_own():
    model = model_of()
    trainer = eb.Adam(model, lr=eb.schedules.Exponential(0.1, factor=0.9), clip=1e3)
    for number, gradients in enumerate(gradients_of(model)):
        if number == 3:
            others = [copy.deepcopy(trainer), pickle.loads(pickle.dumps(trainer))]
        for each in [trainer, *(others if number >= 3 else [])]:
            give(each.model, gradients)
            each.update()
    for other in others:
        assert (other.steps, other.clip) == (6, 1e3)
        for parameter in model:
            np.testing.assert_array_equal(other.model[parameter.name].value(), parameter.value())


@pytest.mark.cpu
@given(st.data())
def test_whatever_is_stacked_has_gradients_or_is_saved(data):
    """Adam on vectors and matrices that are stacked at any time, with gradients or without, and copied in between."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    shapes = data.draw(st.lists(st.sampled_from([(2,), (1,), (1, 3), (2, 3), (4, 1)]), min_size=2, max_size=4))
    for number, shape in enumerate(shapes):
        model.add_parameters(shape, name=f"p{number}", init="uniform")
    names = [parameter.name for parameter in model]
    trainer = eb.Adam(model, lr=0.1, eps=1e-3)
    want = {parameter.name: parameter.value() for parameter in model}
    means, squares, counts = (dict.fromkeys(names, 0.0) for _ in range(3))
    for _ in range(data.draw(st.integers(1, 5))):
        if data.draw(st.booleans()):
            chosen = data.draw(st.permutations(names))[: data.draw(st.integers(1, len(names)))]
            if len({model[name].shape[1:] for name in chosen}) == 1:
                stacked([model[name].spec for name in chosen])
        if data.draw(st.booleans()):
            trainer = copy.deepcopy(trainer)
            model = trainer.model
        for name in data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)):
            g = np.full(want[name].shape, data.draw(st.floats(-2, 2))) + np.arange(want[name].size).reshape(
                want[name].shape
            )
            model[name].accumulator()[0][...] = g
            counts[name] += 1
            means[name] = 0.9 * means[name] + 0.1 * g
            squares[name] = 0.999 * squares[name] + 0.001 * g**2
            mean, square = means[name] / (1 - 0.9 ** counts[name]), squares[name] / (1 - 0.999 ** counts[name])
            want[name] = want[name] - 0.1 * mean / (np.sqrt(square) + 1e-3)
        trainer.update()
        for parameter in model:
            np.testing.assert_allclose(parameter.value(), want[parameter.name], rtol=1e-10, atol=1e-12)


def test_each_difference_of_a_state_is_named():
    model = model_of()
    trainer = eb.Momentum(model)
    give(model, next(gradients_of(model)))
    trainer.update()
    arrays, numbers = trainer.state()
    changed = arrays | {"velocity/b": arrays["velocity/b"].astype(np.float32), "velocity/Z": np.zeros(3)}
    del changed["velocity/W"]
    counts = {**numbers, "updates": {**numbers["updates"], "Y": 1}}
    other = eb.Momentum(model)
    assert other.differences(changed, counts) == {
        "velocity/W": "not in the file",
        "velocity/b": "float32[5] in the file, float64[5] here",
        "velocity/Z": "in the file, but not here",
        "updates/Y": "in the file, but not here",
    }
    other.load_state(changed, counts)
    assert other.state()[1]["updates"] == {"U": 1, "V": 1, "table": 1}
    assert eb.Adam(model).differences(arrays, numbers) == {"optimizer": "Momentum in the file, Adam here"}
    assert "are not those of a trainer" in other.differences(arrays, {**numbers, "steps": "1"})["optimizer"]


def test_other_rows_of_a_table_are_left_alone():
    """Rows without a gradient stay as they are, their state included."""
    model = eb.ParameterCollection(seed=0)
    table = model.add_lookup_parameters((100, 3), name="table")
    trainer = eb.AdamW(model, lr=0.1, weight_decay=0.5)
    before = table.value()
    for _ in range(2):
        table.add_rows(np.array([7, 42]), np.ones((2, 3), np.float32))
        trainer.update()
    changed = (table.value() != before).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(changed), [7, 42])
    arrays, _ = trainer.state()
    for array in arrays.values():
        np.testing.assert_array_equal(np.flatnonzero(array.any(axis=1)), [7, 42])


def test_what_an_update_has_found_is_looked_for_again_where_it_is_another():
    """Other parameters have gradients, are frozen, in other groups, or parts of a stack since."""
    model = eb.ParameterCollection(dtype="float64")
    a, b, c = (model.add_parameters((2, 3), name=name, init=1.0) for name in "abc")
    table = model.add_lookup_parameters((4, 3), name="t", init=1.0)
    trainer = eb.SGD([{"params": [a, b]}, {"params": [c, table], "lr": 0.5}], lr=0.25, clip=1e6)
    want = {parameter: parameter.value().copy() for parameter in model}
    random = np.random.default_rng(0)

    def update(*parameters):
        squares = 0.0
        for parameter in parameters:
            gradient = random.standard_normal((2, 3))
            rate = trainer.groups[parameter in (c, table)].get("lr", 0.25)
            if parameter is table:
                table.add_rows(np.array([3, 1]), gradient)
                want[table][[3, 1]] -= rate * gradient
            else:
                parameter.accumulator()[0][...] += beside(parameter, gradient)
                want[parameter] -= rate * gradient
            squares += (gradient**2).sum()
        trainer.update()
        assert trainer.gradient_norm == pytest.approx(squares**0.5)
        for parameter in model:
            np.testing.assert_allclose(parameter.value(), want[parameter], rtol=1e-12)
            assert not parameter.has_grad
            assert not parameter.grad().any()

    for _ in range(2):
        update(a, b, c)
    update(a, b, c, table)
    update(table)
    update(a, table)
    trainer.groups[1]["lr"] = 0.125
    update(a, c)
    b.freeze()
    update(a, c)
    b.freeze(False)
    assert stacked([a.spec, c.spec]) is not None
    for _ in range(2):
        update(a, b, c, table)
    update(a, b)
    update(c)
    gradient = random.standard_normal((4, 3))
    table.accumulator()[0][...] = beside(table, gradient)  # of all rows
    want[table] -= 0.125 * gradient
    trainer.update()
    np.testing.assert_allclose(table.value(), want[table], rtol=1e-12)
    update(a, table)


class TestTwoTrainers:
    """Gradients that one network's loss leaves in the other's parameters."""

    @staticmethod
    def networks(table):
        models = [eb.ParameterCollection(seed=number) for number in range(2)]
        G = models[0].add_parameters(3, name="G", init=1.0)
        D = (models[1].add_lookup_parameters if table else models[1].add_parameters)((2, 3), name="D", init=1.0)
        return G, D, *(eb.SGD(made, lr=0.1) for made in models)

    @staticmethod
    def go_back(*operands):
        with eb.Graph():
            loss = eb.sum([eb.sum(x[1] if x.ndim == 2 else x) for x in operands])
        loss.backward()

    @pytest.mark.parametrize("table", [False, True])
    def test_an_update_by_what_the_other_loss_left_warns_once(self, table):
        G, D, generating, judging = self.networks(table)
        for step in range(3):
            self.go_back(G, D)
            generating.update()
            assert D.has_grad
            self.go_back(D)
            if step:
                judging.update()
                continue
            with pytest.warns(eb.EdBatchWarning, match=r"SGD.update: the gradient of 'D' .* zero_grad\(\)"):
                judging.update()

    @pytest.mark.parametrize("forget", ["trainer", "collection", "parameter", "frozen"])
    def test_who_forgets_them_is_not_warned(self, forget):
        G, D, generating, judging = self.networks(False)
        for _ in range(3):
            D.freeze(forget == "frozen")
            self.go_back(G, D)
            D.freeze(False)
            generating.update()
            {"trainer": judging, "collection": judging.model, "parameter": D, "frozen": judging}[forget].zero_grad()
            before = D.value()
            self.go_back(D)
            judging.update()
            np.testing.assert_allclose(D.value(), before - [[0.0], [0.1]], rtol=1e-6)

    def test_gradients_that_are_added_up_on_purpose_do_not_warn(self):
        G, D, generating, judging = self.networks(False)
        for _ in range(2):
            for _ in range(3):  # several mini-batches, then an update by all of them
                self.go_back(G, D)
            generating.update()
            judging.update()  # one loss, two trainers
        for _ in range(3):  # another model is trained meanwhile
            self.go_back(D)
            self.go_back(G)
            generating.update()
        judging.update()
        np.testing.assert_allclose(D.value(), [[1.0] * 3, [0.1] * 3], atol=1e-6)


@pytest.mark.parametrize("left_out", ["frozen", "another trainer's", "cleared"])
def test_parts_of_a_stack_are_clipped_and_checked_by_the_gradients_of_now(left_out):
    model = eb.ParameterCollection(seed=0)
    a, b = (model.add_parameters((3, 3), name=name, init=np.eye(3)) for name in "ab")

    @eb.cell
    def step(x, scale):
        return scale * (a @ x) * eb.sigmoid(b @ x)  # a and b lie in one array

    if left_out == "frozen":
        b.freeze()
    trainer = eb.SGD([a] if left_out == "another trainer's" else model, lr=1.0, clip=1.0)

    def change(scale):
        with eb.Graph():
            loss = eb.sum(step(eb.ones(3), scale))
        loss.backward()
        if left_out == "cleared":
            b.zero_grad()
        before = a.value().copy()
        trainer.update()
        return np.linalg.norm(a.value() - before)

    assert a.stack is None
    assert change(0.01) == pytest.approx(0.0219, rel=1e-2)
    assert a.stack is b.stack is not None
    assert change(1e6) == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(eb.EdBatchError, match="NaN or infinite gradient of 'a'"):
        change(float("nan"))
