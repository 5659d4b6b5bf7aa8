import numpy as np
import pytest

from edbatch.memory.plan.windows import GRADIENT, Windows

F32 = np.dtype("float32")


@pytest.fixture
def windows():
    return Windows()


@pytest.mark.parametrize(
    ("view", "column", "contiguous"),
    [
        (lambda x: x[:, 1], 4, True),
        (lambda x: x[:, 1:], 4, True),
        (lambda x: x.reshape(len(x), 12), 0, True),
        (lambda x: x[:, 2, 3], 11, True),
        (lambda x: x[:, :, 1:3], 1, False),  # rows of the slice lie apart
        (lambda x: x.transpose(0, 2, 1), 0, False),
        (lambda x: x[:, ::-1], 8, False),
    ],
)
def test_where_a_view_lies_in_a_row(windows, view, column, contiguous):
    window = windows.windows[windows.look((3, 4), F32, view)]
    array = np.arange(24.0, dtype=F32).reshape(2, 3, 4)
    seen = window.view(array)
    assert np.shares_memory(seen, array)
    assert (window.column, window.contiguous, window.entries) == (column, contiguous, seen[0].size)
    assert window.shape == seen.shape[1:]
    assert window.strides == tuple(stride // 4 for stride in seen.strides[1:])
    assert seen.flat[0] == array.flat[column]
    if contiguous:
        np.testing.assert_array_equal(seen.reshape(2, -1), array.reshape(2, 12)[:, column : column + window.entries])


@pytest.mark.parametrize("dtype", [None, "abc", 3])
def test_a_layout_that_is_none_leaves_nothing_behind(windows, dtype):
    known = windows.plain((3,), F32)
    for add in (lambda: windows.plain((2,), dtype), lambda: windows.look((2,), dtype, lambda x: x[:, 0])):
        with pytest.raises(TypeError):
            add()
    assert windows.windows == [windows.windows[known], windows.windows[known + GRADIENT]]
    assert windows.layouts == [((3,), F32)] * 2
    assert windows.widths() == [3, 3]
