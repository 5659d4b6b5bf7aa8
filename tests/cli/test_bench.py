"""`edbatch bench`."""

import json

import pytest

from edbatch.experiments.registry import experiments


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)


def test_list(edbatch):
    status, out, err = edbatch("bench", "--list")
    assert (status, err) == (0, "")
    assert all(f"{name} " in out for name in experiments())
    assert "table 5" in out


@pytest.mark.slow
def test_one_experiment_printed_saved_and_drawn(edbatch, tmp_path):
    pytest.importorskip("matplotlib")
    path, picture = tmp_path / "found.json", tmp_path / "found.png"
    status, out, err = edbatch("bench", "stages", "--quick", "--json", path, "--png", picture)
    assert (status, err) == (0, "")
    assert "### stages: ED-Batch, figure 8" in out
    assert "on made-up samples, quick, one thread" in out
    assert picture.stat().st_size > 10_000
    measured = json.loads(path.read_text())["experiments"]["stages"]
    assert {row["workload"] for done in measured["points"] for row in done["rows"]} == {
        "tagger", "tree-lstm", "lattice-lstm",
    }  # fmt: skip
    before = path.read_text()
    assert edbatch("bench", "stages", "--quick", "--json", path)[0] == 0
    assert json.loads(path.read_text()) == json.loads(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(experiments()))
def test_every_experiment(edbatch, tmp_path, name):
    pytest.importorskip("matplotlib")
    status, out, err = edbatch("bench", name, "--quick", "--png", tmp_path / "found.png")
    assert (status, err) == (0, "")
    assert f"### {experiments()[name].title}" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no experiment is named 'nothing'; expected all or one of"),
        ([], "expected an experiment, or all"),
        (["memory", "--json", "none/found.json"], "cannot be written"),
        (["memory", "--png", "found.jpg"], "expected a name that ends with .png"),
        (["memory", "--data", "none"], "none: no folder; expected the one with the data (--data)"),
    ],
)
def test_errors_are_one_line(edbatch, arguments, message):
    status, _, err = edbatch("bench", *arguments)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_malformed_file_to_go_on_from(edbatch, tmp_path):
    path = tmp_path / "found.json"
    path.write_text("[]")
    status, _, err = edbatch("bench", "memory", "--json", path)
    assert (status, err.count("\n")) == (2, 1)
    assert f"{path}: no results of `edbatch bench` to go on from" in err
