"""Shared by all tests: the real data, where there is any."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine must not fail a test for being slow; CI tries the same examples every time.
settings.register_profile("edbatch", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("edbatch")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder that EDBATCH_DATA names."""
    folder = os.environ.get("EDBATCH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("EDBATCH_DATA names no folder with data")
    return Path(folder)
