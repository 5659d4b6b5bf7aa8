"""Several trainings and mappings of one program, and of others: in turns, or told at once who is in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import edbatch as eb
from edbatch import EdBatchError
from edbatch.distributed import cluster, train
from edbatch.distributed.cluster import ENVIRONMENT
from tests.distributed.nets import difference, started

ROOT = Path(__file__).parents[2]
ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.cpu, pytest.mark.slow]


async def twice(x):
    return 2 * x


def test_two_trainings_and_a_mapping_in_turns(tmp_path):
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
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


def test_too_few_processors(small_cluster, tmp_path, monkeypatch):
    """One error, in seconds; and who begins after others have ended has them."""
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    first, run = train(started(tmp_path / "first"), 2, workers=1), started(tmp_path / "second")
    next(first)
    message = "2 processors are needed, and 1 of the cluster's 2 are free; use fewer workers, or wait until"
    with pytest.raises(EdBatchError, match=f"^train: {message} others have ended$"):
        list(train(run, 2, workers=2))
    with pytest.raises(EdBatchError, match=f"^map: {message}"):
        list(eb.distributed.map(twice, [1], workers=2))
    assert list(eb.distributed.map(twice, [1], workers=1)) == [2]
    assert len(list(first)) == 1
    assert len(list(train(run, 2, workers=2))) == 2
    with pytest.raises(EdBatchError, match=r"^train: 3 processors are needed, and . of the cluster's 2 are free"):
        list(train(run, 3, workers=3))


LEFT = """
import sys
import edbatch as eb
from tests.distributed.nets import started
from tests.distributed.test_cluster import twice
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

    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        other = machines.add_node(num_cpus=1)
        machines.wait_for_nodes()
        run = started(tmp_path)
        training = train(run, 200, workers=2, address=machines.address, timeout=60)
        next(training)
        machines.remove_node(other)
        with pytest.raises(EdBatchError, match=r"^train: 1 processors are needed, and 0 of the cluster's 1 are free"):
            list(training)
        assert run.step > 0
    finally:
        ray.shutdown()
        machines.shutdown()
