"""Every op in the place of tanh."""

from scripts.bench.ops import USES, computing, main

OPS = ["softmax", "sum_list", "lookup", "cross_entropy"]


def test_every_op_can_be_measured():
    assert set(USES) == set(computing())


def test_ops_are_compared(tables_of):
    (rows,) = tables_of(main, "--rounds=1", "--hidden=24", "--batch=2", "--steps=3", "--op", *OPS).values()
    assert [row["op"] for row in rows] == ["tanh", *OPS]
    assert all(row["forward / tanh"] > 0 and row["training / tanh"] > 0 for row in rows)
