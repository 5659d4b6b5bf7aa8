"""Functions and operators have the values, dimensions and gradients that real DyNet gave; see `calls`."""

import json
from pathlib import Path

import numpy as np
import pytest

import edbatch.dynet as dy
from tests.dynet import calls

RECORDED = json.loads((Path(__file__).parent / "data" / "calls.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("call", RECORDED)
def test_as_in_dynet(call):
    expected = RECORDED[call]
    if "error" in expected:
        with pytest.raises((ValueError, TypeError, IndexError, AttributeError)):
            calls.asked(dy, call)
        return
    found = calls.asked(dy, call)
    assert found["dim"] == expected["dim"]
    close(found["value"], expected["value"])
    gradients = expected.get("gradients", {})
    assert found.get("gradients", {}).keys() <= gradients.keys()
    for name, gradient in gradients.items():
        close(found["gradients"].get(name, [0] * len(gradient)), gradient)


def close(found, expected):
    found, expected = np.array(found, float), np.array(expected, float)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
