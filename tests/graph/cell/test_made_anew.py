"""A cell that is made again and again says so, and many cells that live together do not."""

import gc
import warnings

import pytest

import edbatch as eb
from edbatch.graph.cell.made_anew import MANY


def use(call):
    with eb.Graph(policy="depth"):
        assert call(eb.ones(2)).value().tolist() == [2, 2]


def test_a_cell_that_is_made_in_every_mini_batch_warns_once():
    def mini_batches(count):
        for _ in range(count):

            @eb.cell
            def double(x):
                return x * 2

            use(double)
            del double
            gc.collect(0)

    with pytest.warns(eb.EdBatchWarning, match=r"double has been made .* of these are no more.*outside") as found:
        mini_batches(2 * MANY)
    assert len(found) == 1
    assert found[0].filename == __file__


def test_cells_that_live_together_are_as_they_should_be():
    def layer():
        return eb.cell(lambda x: x * 2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layers = [layer() for _ in range(MANY + 20)]
        for one in layers:
            use(one)
