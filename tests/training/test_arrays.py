import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.stacking import stacked
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.training.arrays import as_stored, gradient_of, in_rows, is_finite, norm, one_row
from tests.training.optimizing import give, gradients_of, model_of

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("shape", [(), (4,), (1, 5), (5, 1), (3, 4), (2, 3, 4)])
def test_one_row_is_the_order_of_memory(shape):
    entries = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    for array in (entries, np.asfortranarray(entries)) if len(shape) < 3 else (entries,):
        row = one_row(array)
        assert row.shape == (1, array.size)
        assert np.shares_memory(row, array)
        np.testing.assert_array_equal(row[0], array.ravel(order="K"))
        back = as_stored(row, array)
        np.testing.assert_array_equal(back, array)
        assert np.shares_memory(back, array)


def test_one_row_of_a_part_of_a_stack():
    model = eb.ParameterCollection()
    a, b = model.add_parameters((2, 3)), model.add_parameters((4, 3))
    assert stacked([a.spec, b.spec]) is not None
    for part in (a, b):
        row = one_row(part.array)
        np.testing.assert_array_equal(row[0], part.value().ravel(order="F"))
        rows = in_rows(part.array)
        assert np.shares_memory(rows, part.array)
        assert rows.strides[1] == rows.itemsize
        np.testing.assert_array_equal(rows, part.value().T)


def norm_of(model):
    entries = [gradient_of(parameter) for parameter in model]
    backend = next(iter(model)).device.backend
    return norm(backend, entries, backend.squares(entries))


@pytest.mark.parametrize("scale", [1.0, 1e30])
def test_norm(scale):
    """Also where squares are too large for float32."""
    model = eb.ParameterCollection()
    parameters = [model.add_parameters(shape) for shape in ((3, 4), (5,), ())]
    table = model.add_lookup_parameters((7, 2))
    random = np.random.default_rng(0)
    for parameter in parameters:
        parameter.accumulator()[0][...] = scale * random.standard_normal(parameter.shape)
    table.add_rows(np.array([5, 1, 5]), np.float32(scale) * random.standard_normal((3, 2)).astype(np.float32))
    everything = np.concatenate([gradient_of(parameter) for parameter in model]).astype(np.float64)
    assert len(everything) == 12 + 5 + 1 + 4
    assert norm_of(model) == pytest.approx(np.linalg.norm(everything), rel=1e-6)
    assert all(is_finite(parameter) for parameter in model)
    for bad in (np.nan, np.inf, -np.inf):
        parameters[1].accumulator()[0][2] = bad
        assert not np.isfinite(norm_of(model))
        assert [is_finite(parameter) for parameter in model] == [True, False, True, True]


@pytest.mark.parametrize("clip", [None, 0.1])
def test_an_update_waits_for_the_device_once(clip, monkeypatch):
    with eb.device("cpu"):
        model = model_of()
    trainer = eb.Adam(model, clip=clip)
    waits = []

    def to_host(array):
        waits.append(array.shape)
        return array

    monkeypatch.setattr(NumPyBackend, "to_host", staticmethod(to_host))
    for gradients in gradients_of(model):
        give(model, gradients)
        waits.clear()
        trainer.update()
        assert len(waits) == 1
