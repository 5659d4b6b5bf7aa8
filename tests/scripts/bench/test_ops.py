"""Every op in the place of tanh."""

from scripts.bench.ops import computing, main


def test_every_op_is_compared_and_none_is_left_to_python(tables_of):
    (rows,) = tables_of(main, "--rounds=1", "--hidden=24", "--batch=2", "--steps=3").values()
    assert {row["op"] for row in rows} == set(computing())
    assert all(row["forward / tanh"] > 0 and row["training / tanh"] > 0 for row in rows)
    assert [row["op"] for row in rows if row["from Python"]] == []
