"""What a newcomer meets."""

from scripts import UNPINNED
from scripts.bench.first_hour import busy, first_example


def test_the_first_example_is_the_readmes():
    assert first_example().startswith("import edbatch as eb\n")
    assert "graph.report()" in first_example()


def test_no_thread_is_pinned():
    assert not {name for name in UNPINNED if name.startswith(("OPENBLAS", "OMP", "MKL"))}


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
