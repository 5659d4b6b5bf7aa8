"""Several trainings and mappings of one program, and of others: in turns, or told at once who is in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import edbatch as eb
from edbatch import EdBatchError
from edbatch.distributed import room, train
from edbatch.distributed.cluster import ONE_THREAD, QUIET
from tests.distributed.nets import difference, started

ROOT = Path(__file__).parents[2]
ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.cpu, pytest.mark.slow]


async def twice(x):
    return 2 * x


@pytest.fixture
def small_cluster(monkeypatch):
    """Of two processors, begun by the program: it is shared with whatever else it does."""
    monkeypatch.setattr(room, "PATIENCE", 2.0)
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
    yield
    ray.shutdown()


def test_two_trainings_and_a_mapping_in_turns(tmp_path):
    before = {name: os.environ.get(name) for name in (*QUIET, *ONE_THREAD)}
    whole = started(tmp_path / "whole")
    list(whole.epochs(2))
    one, two = started(tmp_path / "one"), started(tmp_path / "two")
    doubled = eb.distributed.map(twice, range(6), workers=2, batch=1)
    pairs = zip(train(one, 2, workers=1), train(two, 2, workers=2), doubled, strict=False)
    assert [(a["epoch"], b["epoch"], x) for a, b, x in pairs] == [(1, 1, 0), (2, 2, 2)]
    del pairs  # the second training waits in it to be asked again
    assert list(doubled) == [4, 6, 8, 10]
    assert max(difference(one, whole), difference(two, whole)) < 1e-5
    assert not ray.is_initialized()
    assert {name: os.environ.get(name) for name in before} == before


def test_the_last_ends_ray(tmp_path):
    first = train(started(tmp_path / "first"), 2, workers=1)
    second = train(started(tmp_path / "second"), 2, workers=1)
    next(first), next(second)
    first.close()
    with pytest.raises(EdBatchError, match=r"^train: address: expected None, got '127.0.0.1:1': what has not ended"):
        list(train(started(tmp_path / "third"), 1, address="127.0.0.1:1"))
    assert len(list(second)) == 1
    assert not ray.is_initialized()


def test_who_has_the_processors(small_cluster, tmp_path):
    first, run = train(started(tmp_path / "first"), 2, workers=1), started(tmp_path / "second")
    next(first)
    with pytest.raises(
        EdBatchError,
        match=rf"^train: 2 of the cluster's 2 processors are needed, and 1 are free \(train, process {os.getpid()} on "
        r".*: 1\); expected fewer workers, or to begin after others have ended$",
    ):
        list(train(run, 2, workers=2))
    with pytest.raises(EdBatchError, match=r"^map: 2 of .* \(train, process"):
        list(eb.distributed.map(twice, [1], workers=2))
    assert list(eb.distributed.map(twice, [1], workers=1)) == [2]
    assert len(list(first)) == 1
    assert len(list(train(run, 2, workers=2))) == 2

    class Other:
        pass

    held = ray.remote(Other).options(num_cpus=2).remote()
    with pytest.raises(EdBatchError, match=r"and 0 are free \(other programs of Ray's: 2\)"):
        list(eb.distributed.map(twice, [1], workers=1))
    ray.kill(held)


def test_ray_is_shut_down_meanwhile(small_cluster, tmp_path):
    training = train(started(tmp_path), 2, workers=1)
    next(training)
    ray.shutdown()
    with pytest.raises(EdBatchError, match=r"^train: Ray was shut down meanwhile; expected it to run as long"):
        next(training)
    assert not ray.is_initialized()


LEFT = """
import sys
import edbatch as eb
from tests.distributed.nets import started
from tests.distributed.test_room import twice
training = eb.distributed.train(started(sys.argv[1]), 9, workers=1)
doubled = eb.distributed.map(twice, range(1000), workers=1, batch=1)
next(training), next(doubled)
raise KeyError("in the middle")
"""


def test_a_program_ends_whatever_it_leaves_open(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-c", LEFT, tmp_path], capture_output=True, text=True, env=env, timeout=120, check=False
    )
    assert found.returncode == 1
    assert found.stderr.rstrip().endswith("KeyError: 'in the middle'")


def test_a_machine_that_is_gone_for_good(tmp_path, monkeypatch):
    """Its processors are not to be had elsewhere: one error, in seconds."""
    from ray.cluster_utils import Cluster

    monkeypatch.setattr(room, "PATIENCE", 2.0)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        other = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        run = started(tmp_path)
        training = train(run, 200, workers=2, address=cluster.address, timeout=60)
        next(training)
        cluster.remove_node(other)
        with pytest.raises(EdBatchError, match=r"^train: the cluster has 1 processors; expected 2, or fewer workers$"):
            list(training)
        assert run.step > 0
    finally:
        ray.shutdown()
        cluster.shutdown()
