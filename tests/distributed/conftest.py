"""Ray as a program begins it: it is used as it is, and stays."""

import pytest


def begun(processors):
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        ray.init(num_cpus=processors, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def one_cluster():
    yield from begun(3)


@pytest.fixture
def small_cluster():
    yield from begun(2)
