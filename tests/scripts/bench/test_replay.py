"""Replayed calls are timed beside what was asked, and epochs with and without replay."""

from scripts.bench.replay import EPOCHS, NODES, main


def test_calls_and_epochs(tables_of):
    calls, epochs = tables_of(main, "--hidden", "4", "--trees", "128").values()
    assert [row["nodes"] for row in calls] == list(NODES)
    for row in calls:
        assert min(row["a call, us"], row["without, us"], row["first call, us"]) > 0
    assert len(epochs) == 3 * EPOCHS
    for row in epochs:
        assert 0 < row["recording, ms"] < row["step, ms"]
