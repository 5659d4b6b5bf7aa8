import inspect
import sys

import pytest

from edbatch.base.lazy import LazyModule


def test_a_module_is_imported_when_it_is_used(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    colors = LazyModule("colorsys")
    assert not hasattr(colors, "__wrapped__")
    assert inspect.unwrap(colors) is colors
    assert "colorsys" not in sys.modules
    assert colors.rgb_to_hsv(0, 0, 1)[2] == 1
    assert "colorsys" in sys.modules


def test_what_is_missing_is_said_as_by_an_import():
    with pytest.raises(ImportError, match="no_such_module"):
        _ = LazyModule("no_such_module").name
    math = LazyModule("math")
    for _ in range(2):  # also once it is imported
        with pytest.raises(AttributeError, match="no_such_name"):
            _ = math.no_such_name


def test_an_interrupt_waits_until_all_is_imported(tmp_path, monkeypatch):
    """As Numba, what was imported by half would stay so."""
    (tmp_path / "slow_one.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\ndone = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    slow = LazyModule("slow_one")
    with pytest.raises(KeyboardInterrupt):
        _ = slow.done
    assert slow.done
    del sys.modules["slow_one"]
