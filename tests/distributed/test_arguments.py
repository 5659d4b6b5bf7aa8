"""What `train` refuses before anything begins, and what it says without Ray."""

import socket
import sys

import pytest

from edbatch import EdBatchError
from edbatch.distributed import Network, train
from edbatch.distributed.waiting import answers
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


@pytest.mark.parametrize("given", [(0,), (-1,), (float("nan"),), ("x",), (1e9, -1), (1e9, "x")])
def test_networks_that_are_none(given):
    with pytest.raises(EdBatchError, match=r"^Network: "):
        Network(*given)


def test_who_answers():
    """An address where nobody does is refused at once: Ray would ask for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert answers(f"127.0.0.1:{port}")
        assert answers(f"ray://127.0.0.1:{port}")
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}", "nowhere.invalid:99"):
        assert not answers(address)
    assert answers("auto")  # Ray knows
