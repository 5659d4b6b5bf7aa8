"""Tests that the check runs: what is told of them."""

import pytest

from scripts.gpu.suite import run_tests

GOOD = "def test_good():\n    pass\n"
BAD = "import pytest\n\n\n@pytest.mark.parametrize('x', ['a b'])\ndef test_bad(x):\n    assert x == 'c'\n"
LONG = 600


@pytest.fixture
def written(tmp_path):
    def write(**sources):
        paths = [tmp_path / f"test_{name}.py" for name in sources]
        for path, source in zip(paths, sources.values(), strict=True):
            path.write_text(source)
        return tuple(map(str, paths))

    return write


def test_counts_and_failures(written):
    found = run_tests("cpu", LONG, written(bad=BAD, good=GOOD))
    assert sorted(found["tests"].split(", ")) == ["1 failed", "1 passed"]
    assert not found["right"]
    assert found["failed"].rpartition("::")[2] == "test_bad[a b]"
    assert "assert 'a b' == 'c'" in found["output"]


def test_no_tests_at_all_are_not_right(written):
    assert not run_tests("cpu", LONG, written(none=""))["right"]
