"""Training runs: a killed one goes on as if nothing had happened, whatever stopped it; what does not fit is said."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import edbatch as eb
from edbatch import EdBatchError

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
SAMPLES = [(RNG.integers(0, 9, n).tolist(), int(n % 3)) for n in RNG.integers(1, 6, 23)]  # 5 mini-batches of 5


class Net:
    """A class for a sequence, by the last output of an LSTM, with dropout."""

    def __init__(self, dim=4, dtype="float32"):
        self.model = eb.ParameterCollection(seed=0, dtype=dtype)
        self.embed = self.model.add_lookup_parameters((9, dim), name="embed")
        self.lstm = eb.models.LSTM(self.model, dim, dim)
        self.W = self.model.add_parameters((3, dim), name="W")

    def loss(self, words, label):
        h = self.lstm.initial_state().transduce([self.embed[word] for word in words])[-1]
        return eb.cross_entropy(self.W @ eb.dropout(h, 0.3), label)

    def losses(self, samples):
        return [self.loss(*sample) for sample in samples]

    def right(self):
        """Also tells whether dropout is off."""
        with eb.Graph(policy="sufficient"):
            return {"loss on dev": sum(eb.forward(self.losses(SAMPLES[:4])))}


def started(folder, net=None, **changes):
    net = net or Net(dim=changes.pop("dim", 4))
    given = {"losses": net.losses, "data": SAMPLES, "batch_size": 5, "seed": 3, "evaluate": net.right, "save_every": 2}
    given |= {"settings": {"model": "Net"}, **changes}
    return eb.Run(folder, net.model, eb.Adam(net.model, lr=0.05, clip=1.0), **given)


def finished(folder, **changes):
    eb.seed(5)
    run = started(folder, **changes)
    figures = list(run.epochs(3))
    return run, figures


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    finished(folder)
    return folder


def assert_same(a, b):
    """The curve, to the last byte; parameters, what Adam remembers, and what dropout will draw."""
    assert (a / "curve.json").read_bytes() == (b / "curve.json").read_bytes()
    with (
        safe_open(a / "checkpoint.safetensors", "numpy") as one,
        safe_open(b / "checkpoint.safetensors", "numpy") as two,
    ):
        assert one.keys() == two.keys()
        for name in one.keys():  # noqa: SIM118 (it is no dict)
            np.testing.assert_array_equal(one.get_tensor(name), two.get_tensor(name))
        for entry in ("metadata", "trainer", "draws"):
            assert one.metadata()[f"edbatch_{entry}"] == two.metadata()[f"edbatch_{entry}"]


def test_it_learns_and_says_so(tmp_path):
    run, figures = finished(tmp_path)
    assert [of["epoch"] for of in figures] == [1, 2, 3]
    assert figures == run.curve.epochs
    assert figures[-1]["loss"] < figures[0]["loss"]
    assert (run.step, len(run.curve.losses)) == (15, 15)
    found = json.loads((tmp_path / "curve.json").read_text())
    assert found["epochs"] == figures
    assert found["loss"] == run.curve.losses
    assert found["settings"] == {"model": "Net", "samples": 23, "batch_size": 5, "seed": 3}


def test_what_is_no_number_is_null_in_json(tmp_path):
    figures = {"nan": float("nan"), "inf": float("inf"), "minus": -np.inf, "half": 0.5}
    run = started(tmp_path, evaluate=lambda: figures)
    run.epochs(1).__next__()
    run.curve.losses[0] = np.nan
    run.curve.write(tmp_path / "curve.json", {})
    found = json.loads((tmp_path / "curve.json").read_text(), parse_constant=pytest.fail)
    assert found["loss"] == [None, *run.curve.losses[1:]]
    assert {name: found["epochs"][0][name] for name in figures} == {
        "nan": None,
        "inf": None,
        "minus": None,
        "half": 0.5,
    }
    again = started(tmp_path, evaluate=lambda: figures)  # the checkpoint has them as they were
    assert np.isnan(again.curve.epochs[0]["nan"])
    assert again.curve.epochs[0]["inf"] == np.inf


def test_the_losses_are_those_of_a_loop_by_hand(tmp_path):
    eb.seed(5)
    run = started(tmp_path, evaluate=None)
    for _ in run.epochs(2):
        pass
    eb.seed(5)
    net = Net()
    trainer = eb.Adam(net.model, lr=0.05, clip=1.0)
    losses = []
    for epoch in range(2):
        order = np.random.default_rng([3, epoch]).permutation(len(SAMPLES))
        for at in range(0, len(order), 5):
            with eb.Graph(policy=run.policy):
                chosen = order[at : at + 5]
                loss = eb.sum(net.losses([SAMPLES[i] for i in chosen]))
            loss.backward()
            losses.append(float(loss.value()) / len(chosen))
            trainer.update()
    assert run.curve.losses == losses
    np.testing.assert_array_equal(net.W.value(), run.model["W"].value())


# The process is killed instead of the n-th call: of an update, or of replacing a checkpoint or a curve.
KILLED = """
import os, sys
import edbatch as eb
from tests.training.test_run import finished

where, last, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
owner = eb.Adam if where == "update" else os
original, calls = getattr(owner, where), 0

def call(*given, **named):
    global calls
    calls += where == "update" or os.path.basename(given[1]) in ("checkpoint.safetensors", "curve.json")
    if calls == last:
        os.kill(os.getpid(), 9)
    return original(*given, **named)

setattr(owner, where, call)
finished(folder)
"""


# Replaced are checkpoints after 2, 4 and 5 mini-batches, then the curve, and so on.
@pytest.mark.cpu  # another process
@pytest.mark.parametrize(
    ("where", "number"),
    [
        pytest.param("update", 1, marks=pytest.mark.slow),
        ("update", 8),
        ("replace", 1),
        pytest.param("replace", 3, marks=pytest.mark.slow),
        ("replace", 4),
        pytest.param("replace", 12, marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_goes_on_with_the_same_curve(where, number, whole, tmp_path):
    command = [sys.executable, "-c", KILLED, where, str(number), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    if (where, number) == ("replace", 4):  # a run goes on with what its checkpoint knows
        assert not (tmp_path / "curve.json").exists()
    finished(tmp_path)
    assert_same(tmp_path, whole)


def test_a_run_that_was_stopped_in_its_process_goes_on_there(whole, tmp_path):
    """By an interrupt, say, in a notebook: anywhere."""
    net = Net()
    calls = {"losses": 0, "evaluate": 0, "lr": 0}

    def stopping(name, at, function):
        def call(*given):
            calls[name] += 1
            if calls[name] == at:
                raise KeyboardInterrupt
            return function(*given)

        return call

    eb.seed(5)
    losses, evaluate = stopping("losses", 10, net.losses), stopping("evaluate", 2, net.right)
    run = started(tmp_path, net, losses=losses, evaluate=evaluate)
    run.trainer.lr = stopping("lr", 9, lambda step: 0.05)  # asked for when gradients have come
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            list(run.epochs(3))
    list(run.epochs(3))
    assert calls["losses"] == 15 + 2
    assert_same(tmp_path, whole)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("name", ["checkpoint.safetensors", "curve.json"])
def test_an_epoch_whose_files_were_not_written_is_given_when_they_are(error, name, whole, tmp_path, monkeypatch):
    eb.seed(5)
    run = started(tmp_path)
    given = list(run.epochs(1))
    write = os.replace

    def stopped(source, target, **how):
        if run.curve.epochs[1:] and str(target).endswith(name):
            raise error
        return write(source, target, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stopped)
        for _ in range(2):
            with pytest.raises((KeyboardInterrupt, eb.EdBatchError)):
                given += run.epochs(3)
    given += run.epochs(3)
    assert [figures["epoch"] for figures in given] == [1, 2, 3]
    assert_same(tmp_path, whole)


def test_gradients_that_were_there_do_not_enter(whole, tmp_path):
    """Left over from before, or of what is measured."""

    def measured():
        with eb.Graph(policy="sufficient"):
            losses = net.losses(SAMPLES[:4])
            eb.sum(losses).backward()
            return {"loss on dev": sum(eb.forward(losses))}

    net = Net()
    for parameter in net.model:
        parameter.set_grad(np.full(parameter.shape, 100.0))
    finished(tmp_path, net=net, evaluate=measured)
    assert_same(tmp_path, whole)


def test_more_epochs_and_no_more(whole, tmp_path):
    eb.seed(5)
    run = started(tmp_path)
    assert len(list(run.epochs(1))) == 1
    again = started(tmp_path)
    assert again.step == 5
    assert list(again.epochs(1)) == []
    assert [of["epoch"] for of in again.epochs(3)] == [2, 3]
    assert_same(tmp_path, whole)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_loss_for_a_mini_batch_and_no_evaluation(dtype, tmp_path):
    net = Net(dtype=dtype)
    run = started(tmp_path, net, losses=lambda samples: eb.mean(net.losses(samples)), evaluate=None, policy="depth")
    (figures,) = run.epochs(1)
    assert figures.keys() == {"epoch", "loss"}
    assert figures["loss"] == pytest.approx(np.mean(run.curve.losses))
    assert 0.5 < figures["loss"] < 2


@pytest.mark.parametrize(("count", "panels"), [(0, 1), (3, 2), (12, 2)])
def test_pictures_of_none_and_of_many_figures(tmp_path, monkeypatch, count, panels):
    figure = pytest.importorskip("matplotlib.figure", reason="the extra plot")
    drawn = []
    savefig = figure.Figure.savefig
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *a, **k: (drawn.append(self), savefig(self, *a, **k)))
    curve = eb.training.Curve(1, [2.0])
    curve.end_epoch({f"figure number {k}": k / 12 for k in range(count)})
    for ending, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        curve.plot(tmp_path / f"curve.{ending}")
        assert (tmp_path / f"curve.{ending}").read_bytes().startswith(begins)
    assert len(drawn[0].axes) == panels
    assert drawn[0].axes[0].lines[0].get_marker() == "."  # of one mini-batch, or there is nothing to see
    assert len(drawn[0].legends) == (count > 5)
    with pytest.raises(EdBatchError, match=r"curve.txt: expected a name that ends with .png, .svg, .pdf"):
        curve.plot(tmp_path / "curve.txt")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4, "batch_size": 6}, "this run began with batch_size 5, now 6; seed 3, now 4; expected the same, or"),
        ({"data": SAMPLES[1:]}, "samples 23, now 22"),
        ({"settings": None}, "model Net, now None"),
        ({"settings": {"model": "Net", "data": "b"}}, "data None, now b"),
        ({"dim": 5}, r"does not fit, nothing was loaded: .*embed: float32\[9, 4\] in the file"),
    ],
)
def test_another_run_is_refused(changes, message, whole):
    net = Net(changes.pop("dim", 4))
    before = net.model["embed"].value()
    with pytest.raises(EdBatchError, match=rf"checkpoint.safetensors: .*{message}"):
        started(whole, net, **changes)
    np.testing.assert_array_equal(net.model["embed"].value(), before)


def test_a_run_that_goes_on_under_other_conditions_says_so(tmp_path):
    """Once, when it goes on; under the same, and when it is only looked at, it says nothing."""
    list(started(tmp_path, policy="depth").epochs(1))
    list(started(tmp_path, policy="depth").epochs(2))
    list(started(tmp_path, policy="sufficient").epochs(2))
    run = started(tmp_path, policy="sufficient")
    with pytest.warns(
        eb.EdBatchWarning, match=r"policy depth, now sufficient; it continues, but the last bits of its curve"
    ) as said:
        list(run.epochs(3))
    assert len(said) == 1
    assert str(said[0].message).startswith(f"{tmp_path / 'checkpoint.safetensors'}: this run was computed with policy")
    assert "\n" not in str(said[0].message)
    assert "BLAS" not in str(said[0].message)
    list(started(tmp_path, policy="sufficient").epochs(4))


def test_folders_that_hold_something_else(whole, tmp_path):
    damaged, other = tmp_path / "damaged", tmp_path / "other"
    for folder in (damaged, other):
        folder.mkdir()
    (damaged / "checkpoint.safetensors").write_bytes((whole / "checkpoint.safetensors").read_bytes()[:100])
    Net().model.save(other / "checkpoint.safetensors")
    (tmp_path / "file").touch()
    with pytest.raises(EdBatchError, match=r"checkpoint.safetensors: not a whole safetensors file"):
        started(damaged)
    with pytest.raises(EdBatchError, match=r"not a checkpoint of a training run \(no 'settings'\)"):
        started(other)
    with pytest.raises(EdBatchError, match="file: cannot be created"):
        started(tmp_path / "file")


def test_an_iterator_that_another_has_overtaken(tmp_path):
    run = started(tmp_path)
    first, second = run.epochs(3), run.epochs(3)  # the one that begins last goes on
    assert next(second)["epoch"] == 1
    assert next(first)["epoch"] == 2
    with pytest.raises(EdBatchError, match=r"Run.epochs: a later call continues this run"):
        next(second)
    assert [figures["epoch"] for figures in first] == [3]
    assert [figures["epoch"] for figures in run.epochs(4)] == [4]
    assert len(run.curve.losses) == run.step == 20
