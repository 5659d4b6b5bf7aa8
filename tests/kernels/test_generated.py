import sys

import pytest

from edbatch.kernels.generated import cache_folder, module_of


@pytest.mark.parametrize("writable", [True, False])
def test_a_source_is_a_module_and_a_file(tmp_path, monkeypatch, writable):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if not writable:
        (tmp_path / "edbatch").write_text("a file where the folder should be")
    source = f'"""Written by a test."""\ndef add(a, b): return a + b + {int(writable)}\n'
    module = module_of(source)
    assert module.add(2, 3) == 5 + writable
    assert module_of(source) is module
    assert sys.modules[module.__name__] is module
    files = list(cache_folder().glob("*.py")) if writable else []
    assert [file.read_text() for file in files] == [source] * writable
