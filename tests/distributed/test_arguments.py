"""What `train` refuses before anything begins, and what it says without Ray."""

import sys

import pytest

from edbatch import EdBatchError
from edbatch.distributed import train
from tests.distributed.nets import started

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2.5}, "workers"),
        ({"workers": 10**6}, "workers"),
        ({"epochs": -1}, "epochs"),
        ({"nodes": 3}, "nodes: expected a function"),
        ({"timeout": 0}, "timeout: expected seconds"),
        ({"timeout": "1"}, "timeout: expected seconds"),
        ({"mean": "no"}, "mean: expected True or False"),
        ({"network": 3}, "network: expected"),
    ],
)
def test_bad_arguments(tmp_path, given, message):
    with pytest.raises(EdBatchError, match=f"^train: ?{message}|^train: {message}"):
        train(started(tmp_path), **{"epochs": 1} | given)


def test_a_missing_ray_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        EdBatchError, match=r"needs Ray, which is not installed .*; expected pip install 'edbatch\[ray\]'$"
    ):
        train(started(tmp_path), 1)
