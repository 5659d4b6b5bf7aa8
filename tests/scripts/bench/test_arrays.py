"""Recording of arrays of expressions is timed for every call, beside what was asked."""

from scripts.bench.arrays import CALLS, main


def test_every_call_has_a_row(tables_of):
    (rows,) = tables_of(main).values()
    assert [row["call"] for row in rows] == [*CALLS, "asked"]
    for row in rows[:-1]:
        assert 0 < row["10,000, ns a node"] < row["a single one, us"] * 1e3
