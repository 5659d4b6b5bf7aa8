"""Parameters, tables, collections, initial values."""

import numpy as np
import pytest

import edbatch.dynet as dy


@pytest.fixture
def model():
    dy.reset_random_seed(1)
    return dy.ParameterCollection()


class TestNames:
    def test_are_paths(self, model):
        part = model.add_subcollection("part")
        named = [
            model.add_parameters(2), model.add_lookup_parameters((3, 2)), model.add_parameters(2, name="W"),
            model.add_parameters(2, name="W"), part.add_parameters(2),
            model.add_subcollection().add_parameters(2, name="b"),
        ]  # fmt: skip
        assert [x.name() for x in named] == ["/_0", "/_1", "/W", "/W_1", "/part/_0", "/_0/b"]
        assert (model.name(), part.name(), model.add_subcollection("part").name()) == ("/", "/part/", "/part_1/")

    def test_hold_no_slashes(self, model):
        with pytest.raises(ValueError, match="without"):
            model.add_parameters(2, name="a/b")


def test_lists(model):
    part = model.add_subcollection("part")
    W, table, b = model.add_parameters((2, 3)), part.add_lookup_parameters((4, 2)), part.add_parameters(3)
    assert model.parameters_list() == [W, b]
    assert part.parameters_list() == [b]
    assert model.lookup_parameters_list() == part.lookup_parameters_list() == [table]


def test_shapes_are_called_or_read(model):
    W = model.add_parameters((2, 3))
    assert W.shape() == W.shape == (2, 3)
    assert W.dim() == ((2, 3), 1)
    assert repr(W) == "Parameter /_0"


class TestInitialValues:
    @pytest.mark.parametrize(
        ("given", "low", "high"),
        [
            ({}, -np.sqrt(6 / 300), np.sqrt(6 / 300)),
            ({"init": "glorot", "gain": 4.0}, -4 * np.sqrt(6 / 300), 4 * np.sqrt(6 / 300)),
            ({"init": "uniform", "scale": 0.5}, -0.5, 0.5),
            ({"init": dy.UniformInitializer(0.25)}, -0.25, 0.25),
        ],
    )
    def test_uniform_ones(self, model, given, low, high):
        values = model.add_parameters((100, 200), **given).as_array()
        assert low <= values.min() < 0.95 * low < 0.95 * high < values.max() <= high

    @pytest.mark.parametrize(
        ("given", "mean", "std"),
        [
            ({"init": "normal", "mean": 3, "std": 2}, 3, 2),
            ({"init": dy.NormalInitializer(1, 4)}, 1, 2),
            ({"init": "he"}, 0, np.sqrt(2 / 100)),
        ],
    )
    def test_gaussian_ones(self, model, given, mean, std):
        values = model.add_parameters((100, 200), **given).as_array()
        assert values.mean() == pytest.approx(mean, abs=0.05)
        assert values.std() == pytest.approx(std, rel=0.05)

    def test_numbers_and_arrays(self, model, tmp_path):
        array = np.arange(6.0).reshape(2, 3)
        (tmp_path / "values").write_text("0 3 1 4 2 5")
        for init in (array, dy.NumpyInitializer(array), dy.FromFileInitializer(str(tmp_path / "values"))):
            assert np.array_equal(model.add_parameters((2, 3), init=init).as_array(), array)
        assert np.array_equal(model.parameters_from_numpy(array).as_array(), array)
        assert np.array_equal(model.lookup_parameters_from_numpy(array).as_array(), array)
        assert (model.add_parameters(3, init=0.5).as_array() == 0.5).all()
        assert (model.add_parameters(3, init=dy.ConstInitializer(2)).as_array() == 2).all()

    def test_arrays_are_copied(self, model):
        array = np.zeros(3, np.float32)
        made = [model.parameters_from_numpy(array), model.lookup_parameters_from_numpy(array[:, None])]
        array[0] = 1
        for one in made:
            one.as_array()[...] = 2  # a copy that may be written to, as in DyNet
            assert not one.as_array().any()

    def test_matrices(self, model):
        assert np.array_equal(model.add_parameters((3, 3), init="identity").as_array(), np.eye(3))
        with pytest.raises(ValueError, match="shape"):
            model.add_parameters((2, 3), init="identity")


class TestParameters:
    def test_values(self, model):
        W = model.add_parameters(2, init=1.0)
        W.set_value([1, 2])
        assert W.value() == W.vec_value() == W.npvalue().tolist() == W.as_array().tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="expected shape"):
            W.set_value(np.ones((2, 1)))

    def test_as_constants(self, model):
        W, x = model.add_parameters((1, 2), init=1.0), dy.inputVector([1, 2])
        dy.sum_elems(W.expr(update=False) * x + W.expr() * x).backward()
        assert W.grad_as_array().tolist() == [[1.0, 2.0]]

    def test_left_alone(self, model):
        W, b = model.add_parameters(2, init=1.0), model.add_parameters(2, init=1.0)
        W.set_updated(False)
        assert (W.is_updated(), b.is_updated()) == (False, True)
        dy.dot_product(W, b).backward()
        dy.SimpleSGDTrainer(model, 0.5).update()
        assert (W.as_array().tolist(), b.as_array().tolist()) == ([1.0, 1.0], [0.5, 0.5])


class TestTables:
    @pytest.fixture
    def table(self, model):
        return model.lookup_parameters_from_numpy(np.arange(8.0).reshape(4, 2))

    def test_rows(self, table):
        assert table[1].value() == dy.lookup(table, 1).value() == [2.0, 3.0]
        assert table.batch([0, 3]).npvalue().T.tolist() == [[0.0, 1.0], [6.0, 7.0]]
        assert dy.lookup_batch(table, [2]).dim() == ((2,), 1)
        assert len(table) == 4
        assert table.row_as_array(2).tolist() == [4.0, 5.0]
        assert table.rows_as_array([0, 1]).tolist() == [[0.0, 1.0], [2.0, 3.0]]
        for wrong in (-1, 4):
            with pytest.raises(ValueError):
                table[wrong]

    def test_writes(self, table):
        table.init_row(1, [8, 9])
        assert table.as_array()[1].tolist() == [8.0, 9.0]
        table.init_from_array(np.zeros((4, 2)))
        assert not table.as_array().any()
        with pytest.raises(ValueError, match="could not broadcast"):
            table.init_from_array(np.zeros((4, 3)))

    def test_the_number_of_the_row_is_the_last_axis(self, table):
        assert table.dim() == ((2, 4), 1)
        assert table.shape() == (4, 2)
        assert np.array_equal(table.npvalue(), table.as_array().T)
        assert np.array_equal(dy.parameter(table).value(), table.as_array().T)

    def test_gradients_of_rows(self, table):
        dy.sum_elems(dy.esum([table[1], table[1], dy.sum_batches(table.batch([0, 1]))])).backward()
        assert table.grad_as_array().tolist() == [[1, 1], [3, 3], [0, 0], [0, 0]]
        assert table.row_grad_as_array(1).tolist() == [3.0, 3.0]
        assert table.rows_grad_as_array([0, 2]).tolist() == [[1.0, 1.0], [0.0, 0.0]]

    def test_rows_of_matrices(self, model):
        array = np.arange(24.0).reshape(2, 3, 4)
        table = model.lookup_parameters_from_numpy(array)
        assert np.array_equal(table[1].value(), array[1])
        assert table.dim() == ((3, 4, 2), 1)
