"""What the table of peers comes to."""

import pytest

from edbatch.experiments.experiment import Setting
from edbatch.experiments.of_papers import peers


def rows(workload, batch, **rates):
    point = {"mode": "forward", "hidden": 64, "workload": workload, "batch": batch}
    found = [{**point, "side": side.replace("_", " "), "samples/s": float(rate)} for side, rate in rates.items()]
    return [*peers.beside_by_hand(found), {**point, "side": "pytorch by hand, padded", "missing": "not written"}]


ROWS = [
    *rows("lattice-gru", 1, edbatch=10, edbatch_replayed=20, pytorch_by_hand=5, pytorch_per_sample=50),
    *rows("lattice-gru", 64, edbatch=120, edbatch_replayed=160, pytorch_by_hand=30, pytorch_per_sample=50),
    *rows("tagger", 64, edbatch=20, edbatch_replayed=80, pytorch_by_hand=40, pytorch_by_hand_compiled=30),
]


def test_figures_are_of_the_fastest_by_hand_and_of_mini_batches():
    found = {row["figure"]: row for row in peers.figures(ROWS)}
    first = found["edbatch, forward, hidden 64: times PyTorch by hand, geometric mean"]
    assert first["measured"] == pytest.approx((4 * 0.5) ** 0.5)
    assert (first["asked"], first["least"]) == (2.0, "0.50 (tagger, batch 64)")
    assert found["edbatch: points of 2 where a peer is faster"]["measured"] == 1
    assert found["edbatch replayed: points of 2 where a peer is faster"]["measured"] == 0
    assert found["lattice-gru, forward, hidden 64: batch 64 over batch 1"]["measured"] == 12


def test_means_are_drawn_by_batch_size():
    (recorded, replayed) = peers.means(ROWS)
    assert (recorded["of"], recorded["batch"], recorded["side"]) == ("forward, hidden 64", 64, "edbatch")
    assert replayed["times"] == pytest.approx((160 / 30 * 80 / 40) ** 0.5)


def test_without_pytorch_there_is_nothing_to_compare():
    assert [row["measured"] for row in peers.figures(rows("tagger", 64, edbatch=1, edbatch_replayed=1))] == [0, 0]


def test_points_leave_out_what_needs_gigabytes():
    found = peers.points(Setting())
    assert {"mode": "forward", "hidden": 256, "workload": "mv-rnn", "batch": 64} in found
    assert {"mode": "forward", "hidden": 256, "workload": "mv-rnn", "batch": 256} not in found
    assert {point["workload"] for point in found if point["batch"] == 1} == {"lattice-lstm", "lattice-gru"}
    assert len(peers.points(Setting(quick=True))) == 6


def test_a_point_has_all_sides():
    pytest.importorskip("torch", reason="the extra bench")
    point = {"mode": "forward", "hidden": 4, "workload": "tree-gru", "batch": 2}
    found = {row["side"]: row for row in peers.measure(Setting(quick=True), point)}
    assert all("missing" in row for side, row in found.items() if side.endswith("compiled"))
    assert all(row["samples/s"] > 0 for row in found.values() if "missing" not in row)
    assert len(found) == 7


def test_why_sides_are_missing():
    sides = {"pytorch by hand": "not installed", "pytorch by hand compiled": "no compiler"}
    assert peers.absent(sides, compiled=True) == sides
    assert peers.absent(sides)["pytorch by hand"] == "not installed"
    assert "minutes" in peers.absent(sides)["pytorch by hand compiled"]
