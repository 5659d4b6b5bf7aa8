"""Every op in the place of tanh."""

import numpy as np
import pytest

import edbatch as eb
from scripts.bench.ops import USES, Recurrent, computing, main

OPS = ["softmax", "sum_list", "lookup", "cross_entropy"]


def test_every_op_can_be_measured():
    assert set(USES) == set(computing())


@pytest.mark.parametrize("name", USES)
def test_every_op_is_recorded_in_a_cell_of_the_default_size(name):
    with eb.Graph(policy="sufficient"):
        assert Recurrent(name, 128).forward(np.ones((1, 2, 128), np.float32)).shape == ()


def test_ops_are_compared(tables_of):
    (rows,) = tables_of(main, "--rounds=1", "--hidden=24", "--batch=2", "--steps=3", "--op", *OPS).values()
    assert [row["op"] for row in rows] == ["tanh", *OPS]
    assert all(row["forward / tanh"] > 0 and row["training / tanh"] > 0 for row in rows)
