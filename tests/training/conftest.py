"""Shared by the tests of optimizers."""

import pytest

import edbatch as eb


@pytest.fixture
def model():
    """A model with one parameter W [2, 3] of ones."""
    model = eb.ParameterCollection()
    model.add_parameters((2, 3), name="W", init=1.0)
    return model
