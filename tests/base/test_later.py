import inspect
import sys

import pytest

from edbatch.base.later import Later


def test_a_module_is_imported_when_it_is_used(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    colors = Later("colorsys")
    assert not hasattr(colors, "__wrapped__")
    assert inspect.unwrap(colors) is colors
    assert "colorsys" not in sys.modules
    assert colors.rgb_to_hsv(0, 0, 1)[2] == 1
    assert "colorsys" in sys.modules


def test_what_is_missing_is_said_as_by_an_import():
    with pytest.raises(ImportError, match="no_such_module"):
        _ = Later("no_such_module").name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = Later("math").no_such_name
