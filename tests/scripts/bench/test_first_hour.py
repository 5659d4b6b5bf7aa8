"""What a newcomer meets."""

import json

import pytest

from scripts.bench.first_hour import busy, first_example, python


def test_the_first_example_is_the_readmes():
    assert first_example().startswith("import edbatch as eb\n")
    assert "graph.report()" in first_example()


@pytest.mark.cpu  # another process
def test_no_thread_is_pinned(monkeypatch):
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "EDBATCH_THREADS"):
        monkeypatch.setenv(name, "1")
    found = json.loads(python(None, "-c", "import json, os; print(json.dumps([*os.environ]))"))
    assert not {name for name in found if name.startswith(("OPENBLAS", "OMP", "MKL")) or name == "EDBATCH_THREADS"}


def test_busy_processes_end(monkeypatch):
    from scripts.bench import first_hour

    started = []
    popen = first_hour.subprocess.Popen
    monkeypatch.setattr(
        first_hour.subprocess, "Popen", lambda *given, **named: started.append(popen(*given, **named)) or started[-1]
    )
    with busy():
        assert [of.poll() for of in started] == [None, None]
    assert all(of.poll() is not None for of in started)
