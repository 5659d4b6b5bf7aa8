"""Steps of machines that are not there: the numbers of one process, and times that follow from those of each phase."""

import numpy as np
import pytest

from edbatch.distributed import Network
from scripts.bench.ray_costs import Costs
from scripts.bench.simulated import Crew, Step, sizes_of, together
from tests.distributed.nets import started

FREE = Costs(0.0, 0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.cpu
def test_a_crew_makes_the_updates_of_one_process(tmp_path, n):
    run, whole = started(tmp_path / "a"), started(tmp_path / "b", policy="sufficient")
    list(whole.epochs(1))
    run.policy = "sufficient"
    crew = Crew(run, n)
    order = np.random.default_rng([3, 0]).permutation(26)
    for at in range(0, 26, 6):
        step = crew.step(order[at : at + 6].tolist())
        assert len(step.gradients) == len(step.record) == len(step.reduce) == len(step.sums) == n
        assert (step.bytes > 0) == (n > 1)
    for name, x in crew.worker.state().parameters.items():
        np.testing.assert_allclose(x, whole.model[name].value(), atol=1e-5)


def step():
    return Step([1.0, 2.0], [10.0, 8.0], [1.0, 3.0], update=2.0, sent=[[0, 100], [200, 0]], sums=[40, 60], nodes=[1, 1])


def test_bytes():
    assert step().bytes == (100 + 200 + 40 + 60) / 2
    assert sizes_of(step()) == (150, 50)


def test_who_waits_for_whom():
    """Sums are begun when all gradients have come and the next part is recorded, the update when all sums have."""
    alone = together([step(), step()], FREE, None)
    assert alone["workers"] == max(max(10, 11) + 1, max(10, 10) + 3) + 2  # 13 + 2
    assert alone["waiting"] == (13 - 11 + 13 - 10) / 2
    slow = together([step(), step()], FREE, Network(100.0, 0.5))
    first = [10 + 0.5 + 200 / 100, 10 + 0.5 + 100 / 100]
    assert slow["workers"] == max(first[0] + 1, first[1] + 3) + 0.5 + 50 / 100 + 2
    costly = together([step(), step()], Costs(0.1, 0.2, 0.3, 99.0, 10), None)
    assert costly["workers"] == pytest.approx(13.2 + 0.1 + 0.3 + 2)
    assert costly["step"] == 99
