"""Programs in DyNet's style learn what they learn in real DyNet: losses and parameters over 60 updates."""

import json
from pathlib import Path

import numpy as np
import pytest

import edbatch.dynet as dy
from tests.dynet import programs

RECORDED = json.loads((Path(__file__).parent / "data" / "programs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RECORDED)
def test_as_in_dynet(name):
    losses, values = programs.trained(dy, name)
    expected = RECORDED[name]
    np.testing.assert_allclose(losses, expected["losses"], rtol=1e-4, atol=1e-4)
    kept = values[:: max(1, len(values) // 50)]
    np.testing.assert_allclose(kept, expected["values"], rtol=0, atol=1e-4)
