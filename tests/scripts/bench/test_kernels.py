"""Generated kernels beside NumPy's functions."""

from scripts.bench.kernels import cases, main


def test_every_kernel_is_compared(tables_of):
    (rows,) = tables_of(main, "--repeats=1").values()
    assert [row["kernel"] for row in rows] == list(cases())
    assert all(row["us"] > 0 for row in rows)
