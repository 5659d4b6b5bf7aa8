"""The pinned figures of two checkouts beside each other."""

from pathlib import Path
from random import Random

import pytest

import edbatch
from scripts.bench.pinned import MODELS, PINS
from scripts.bench.pins import main

ROOT = str(Path(edbatch.__file__).parent.parent)


@pytest.mark.cpu  # other processes
@pytest.mark.slow
def test_a_checkout_beside_itself(tables_of):
    pins = ("record-op", "import")
    rows = tables_of(main, "--before", ROOT, "--after", ROOT, "--pin", *pins)["Pins"]
    assert tuple(row["pin"] for row in rows) == pins
    assert all(row["before"] > 0 and row["after / before, median"] > 0 for row in rows)


def test_a_name_that_no_pin_has(tables_of):
    with pytest.raises(SystemExit, match="expected the beginning of one of record-op"):
        tables_of(main, "--before", ROOT, "--after", ROOT, "--pin", "no-such-pin")


def test_samples_are_those_of_a_seed():
    for _, sample, lengths in MODELS.values():
        assert sample(Random(1), lengths[3]) == sample(Random(1), lengths[3])
    assert {"record-cell", "lattice-train-256", "cold-start"} <= PINS.keys()
