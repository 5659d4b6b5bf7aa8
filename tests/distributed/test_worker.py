"""Workers compute what one process does, and have the same bits; without Ray."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edbatch as eb
from edbatch.distributed import worker
from edbatch.distributed.team import divided
from tests.distributed.nets import Net, started
from tests.distributed.together import Together

BATCHES = [list(range(at, min(at + 6, 26))) for at in range(0, 26, 6)]
pytestmark = pytest.mark.cpu


def alone(run, batches):
    """The losses, of one process."""
    found = []
    for numbers in batches:
        with eb.Graph(policy="sufficient"):
            losses = run.losses([run.data[number] for number in numbers])
            total = losses if isinstance(losses, eb.Expression) else eb.sum(losses)
        total.backward()
        found.append(total.value() / (1 if isinstance(losses, eb.Expression) else len(losses)))
        run.trainer.update()
    return found


def assert_close(run, worker):
    for name, x in run.model.items():
        np.testing.assert_allclose(x.value(), worker.state()[2].parameters[name], atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", ["losses", "mean", "programs"])
def test_any_number_of_workers_makes_the_updates_of_one_process(tmp_path, monkeypatch, n, kind):
    """7 workers have samples of 6: one has none; parameters lack gradients in some parts, or all."""
    monkeypatch.setattr(worker, "CHECK_EVERY", 1)
    mean = kind == "mean"
    runs = [started(tmp_path / str(i), Net(mean=mean), "losses" if mean else kind) for i in range(2)]
    together = Together(runs[1], n, mean)
    done = together.steps(BATCHES)
    np.testing.assert_allclose([x[0][0] for x in done], alone(runs[0], BATCHES), rtol=1e-5)
    for one in together.workers:
        assert_close(runs[0], one)
    for of_step in done:
        assert len({(loss, checksum) for loss, _, checksum in of_step}) == 1
        assert of_step[0][2] is not None


def test_masks_follow_from_the_sample_whatever_the_number_of_workers(tmp_path):
    states = []
    for n in (1, 2, 4):
        eb.seed(5)
        together = Together(started(tmp_path / str(n), Net(dropout=0.5)), n)
        together.steps(BATCHES)
        states.append(together.workers[0].state()[2])
    for state in states[1:]:
        for name, x in states[0].parameters.items():
            np.testing.assert_allclose(x, state.parameters[name], atol=1e-5)
        assert state.draws == states[0].draws == {"seed": 5, "graphs": len(BATCHES)}


def test_who_begins_in_the_middle_goes_on_alike(tmp_path):
    eb.seed(5)
    whole = Together(started(tmp_path / "a", Net(dropout=0.3)), 2)
    whole.steps(BATCHES)
    eb.seed(5)
    half = Together(started(tmp_path / "b", Net(dropout=0.3)), 2)
    half.steps(BATCHES[:2])
    half.gradients(BATCHES[4])  # of a step that was begun, and is done again
    step, losses, state = half.workers[1].state()
    assert (step, list(losses)) == (2, [1, 2])
    for one in half.workers:
        one.begin(state, step)
    half.steps(BATCHES[2:])
    for name, x in whole.workers[0].state()[2].parameters.items():
        np.testing.assert_array_equal(x, half.workers[0].state()[2].parameters[name])


@given(st.lists(st.integers(0, 1000), max_size=50), st.integers(1, 9))
def test_parts_are_all_samples_and_about_the_same(sizes, n):
    parts = divided(sizes, n)
    assert sorted(place for part in parts for place in part) == list(range(len(sizes)))
    assert all(part == sorted(part) for part in parts)
    loads = [sum(sizes[place] for place in part) for part in parts]
    least = max([sum(sizes) / n, *sizes])
    assert max(loads) <= 4 / 3 * max(least, sum(sorted(sizes, reverse=True)[n - 1 : n + 1])) + 1e-9
