"""Generated kernels beside NumPy's functions."""

import numpy as np

from scripts.bench.kernels import cases, main


def test_every_kernel_is_compared(tables_of):
    single, double = tables_of(main, "--repeats=1").values()
    for dtype, rows in ((np.float32, single), (np.float64, double)):
        assert [row["kernel"] for row in rows] == list(cases(dtype))
        assert all(row["us"] > 0 for row in rows)
