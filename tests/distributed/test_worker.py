"""Workers compute what one process does, and have the same bits; without Ray."""

import numpy as np
import pytest

import edbatch as eb
from edbatch import EdBatchError
from tests.distributed.nets import SAMPLES, Net, started
from tests.distributed.together import Together

BATCHES = [list(range(at, min(at + 6, 26))) for at in range(0, 26, 6)]
pytestmark = pytest.mark.cpu


def alone(run, batches, scale=lambda n: 1.0):
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


def assert_close(run, worker, atol=1e-5):
    for name, x in run.model.items():
        np.testing.assert_allclose(x.value(), worker.state().parameters[name], atol=atol)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", ["losses", "mean", "programs"])
def test_any_number_of_workers_makes_the_updates_of_one_process(tmp_path, n, kind):
    """7 workers have samples of 6: one has none; parameters lack gradients in some parts, or all."""
    mean = kind == "mean"
    runs = [started(tmp_path / str(i), Net(mean=mean), "losses" if mean else kind) for i in range(2)]
    together = Together(runs[1], n, mean)
    done = together.steps(BATCHES)
    np.testing.assert_allclose([x[0].loss for x in done], alone(runs[0], BATCHES), rtol=1e-5)
    for worker in together.workers:
        assert_close(runs[0], worker)
    for of_step in done:
        assert len({(x.loss, x.checksum) for x in of_step}) == 1
        assert of_step[0].checksum is not None


def test_masks_follow_from_the_sample_whatever_the_number_of_workers(tmp_path):
    states = []
    for n in (1, 2, 4):
        eb.seed(5)
        together = Together(started(tmp_path / str(n), Net(dropout=0.5)), n)
        together.steps(BATCHES)
        states.append(together.workers[0].state())
    for state in states[1:]:
        for name, x in states[0].parameters.items():
            np.testing.assert_allclose(x, state.parameters[name], atol=1e-5)
        assert state.draws == states[0].draws == {"seed": 5, "graphs": len(BATCHES)}


def test_who_begins_in_the_middle_goes_on_alike(tmp_path):
    whole = Together(started(tmp_path / "a", Net(dropout=0.3)), 2)
    whole.steps(BATCHES)
    half = Together(started(tmp_path / "b", Net(dropout=0.3)), 2)
    half.steps(BATCHES[:2])
    half.record(BATCHES[4])  # was begun, and is forgotten
    state = half.workers[1].state()
    for worker in half.workers:
        worker.begin(state, 2)
    half.steps(BATCHES[2:])
    for name, x in whole.workers[0].state().parameters.items():
        np.testing.assert_array_equal(x, half.workers[0].state().parameters[name])


def test_bytes_are_of_what_there_is(tmp_path):
    """Twice (n - 1) / n of dense gradients and rows; what no sample used is not sent."""
    run = started(tmp_path)
    together = Together(run, 2)
    [done] = together.steps([[0, 1, 2, 3]])
    dense = sum(x.value().nbytes for name, x in run.model.items() if name not in ("embed", "classes", "odd"))
    rows = len({word for words, _ in SAMPLES[:4] for word in words})
    most = dense + (rows + 3) * 2 * (4 * 4 + 4) + 100
    assert dense < max(x.bytes for x in done) < most
    assert not any(words[0] == 7 for words, _ in SAMPLES[:4])


def test_an_error_of_losses_names_the_sample(tmp_path):
    together = Together(started(tmp_path, losses="failing"), 2)
    bad = next(number for number, (_, label) in enumerate(SAMPLES) if label == 2)
    together.record([bad, *(number for number, (_, label) in enumerate(SAMPLES) if label == 0)][:3])
    with pytest.raises(EdBatchError, match=rf"^train: losses of sample {bad}: KeyError: 2") as error:
        [worker.gradients() for worker in together.workers]
    assert "in failing" in error.value.__notes__[0]
