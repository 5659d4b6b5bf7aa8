import numpy as np
import pytest

from edbatch.memory.plan.windows import Windows

F32 = np.dtype("float32")


@pytest.fixture
def windows():
    return Windows()


def test_one_plain_window_for_each_layout(windows):
    assert windows.plain((3,), F32) == windows.plain((3,), F32)
    assert windows.plain((3,), F32) != windows.plain((3,), np.dtype("float64"))
    assert windows.plain((3,), F32) != windows.plain((3, 1), F32)


@pytest.mark.parametrize(
    ("view", "column", "width", "entries"),
    [
        (lambda x: x[:, 1], 4, 4, 4),
        (lambda x: x[:, 1:], 4, 8, 8),
        (lambda x: x.reshape(len(x), 12), 0, 12, 12),
        (lambda x: x[:, 2, 3], 11, 1, 1),
        (lambda x: x[:, :, 1:3], 0, 0, 6),  # rows of the slice lie apart
        (lambda x: x.transpose(0, 2, 1), 0, 0, 12),
        (lambda x: x[:, ::-1], 0, 0, 12),
    ],
)
def test_where_a_view_lies_in_a_row(windows, view, column, width, entries):
    number = windows.look((3, 4), F32, view)
    window = windows.windows[number]
    assert (window.column, window.width, window.entries) == (column, width, entries)
    array = np.arange(24.0, dtype=F32).reshape(2, 3, 4)
    seen = window.view(array)
    assert np.shares_memory(seen, array)
    if width:
        np.testing.assert_array_equal(seen.reshape(2, -1), array.reshape(2, 12)[:, column : column + width])


@pytest.mark.parametrize("dtype", [None, "abc", 3])
def test_a_layout_that_is_none_leaves_nothing_behind(windows, dtype):
    known = windows.plain((3,), F32)
    for add in (lambda: windows.plain((2,), dtype), lambda: windows.look((2,), dtype, lambda x: x[:, 0])):
        with pytest.raises(TypeError):
            add()
    assert windows.windows == [windows.windows[known]]
    assert windows.layouts == [((3,), F32)]
    assert windows.widths() == [3]
