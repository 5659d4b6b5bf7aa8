"""Checkpoints: everything comes back, what differs is named, and nothing that goes wrong costs the previous file."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import edbatch as eb
from edbatch.graph.cell.stacking import stacked
from edbatch.graph.model.checkpoint import BLANK, KEY, MARK, VERSION, sealed
from tests.arrays import beside


def model_of(seed=0, dtype="float32"):
    """W [2, 3] and V [4, 3], stacked; a vector; a number; a table."""
    model = eb.ParameterCollection(seed=seed, dtype=dtype)
    W, V = model.add_parameters((2, 3), name="W"), model.add_parameters((4, 3), name="V")
    stacked([W.spec, V.spec])
    model.add_parameters(5, name="b", init="uniform")
    model.add_parameters((), name="n", init=seed)
    model.add_lookup_parameters((7, 2), name="embed")
    return model


def values(model):
    return {parameter.name: parameter.value() for parameter in model}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def train(model, trainer, steps, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        for parameter in model:
            if isinstance(parameter, eb.LookupParameters):
                parameter.add_rows(rng.integers(0, 7, 3), rng.standard_normal((3, 2)).astype(parameter.dtype))
            else:
                parameter.accumulator()[0][...] += beside(parameter, rng.standard_normal(parameter.shape))
        trainer.update()


@pytest.fixture
def saved(tmp_path):
    """(model, trainer, file): a model after two updates."""
    model = model_of()
    trainer = eb.Adam(model)
    train(model, trainer, 2)
    model.save(tmp_path / "m.safetensors", trainer=trainer)
    return model, trainer, tmp_path / "m.safetensors"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models_come_back(tmp_path, dtype):
    model, other = model_of(0, dtype), model_of(1, dtype)
    model.save(tmp_path / "m.safetensors")
    assert not same(values(model), values(other))
    checkpoint = other.load(tmp_path / "m.safetensors")
    assert same(values(model), values(other))
    assert (checkpoint.metadata, checkpoint.policy, checkpoint.left) == ({}, None, {})


def test_others_read_the_file_and_write_it(saved):
    model, _, path = saved
    tensors = safetensors.numpy.load_file(path)
    for name, value in values(model).items():
        np.testing.assert_array_equal(tensors[name], value)
    plain = {name: np.asarray(2 * value) for name, value in values(model).items()}
    safetensors.numpy.save_file(plain, path)
    model.load(path)
    assert same(values(model), plain)


def test_training_goes_on_as_if_nothing_had_happened(saved):
    model, trainer, path = saved
    other = eb.ParameterCollection(seed=9)  # in another order and not stacked
    for name in ("b", "n", "V", "W"):
        other.add_parameters(model[name].shape, name=name)
    other.add_lookup_parameters((7, 2), name="embed")
    resumed = eb.Adam(other)
    other.load(path, trainer=resumed)
    assert (resumed.steps, resumed.skipped) == (2, 0)
    rng = np.random.default_rng(3)
    for _ in range(3):
        for parameter in model:
            gradient = rng.standard_normal(parameter.shape).astype(np.float32)
            for each in (parameter, other[parameter.name]):
                if parameter.name == "embed":
                    each.add_rows(np.arange(3), gradient[:3])
                else:
                    each.accumulator()[0][...] = beside(each, gradient)
        trainer.update()
        resumed.update()
    assert same(values(model), values(other))
    assert same(trainer.state()[0], resumed.state()[0])


FROZEN = {"V", "embed"}  # a part of a stack, and a table


def frozen(model):
    return {name for name, parameter in model.items() if parameter.frozen}


def test_a_resumed_run_leaves_frozen_what_was(saved):
    model, trainer, path = saved
    for name in FROZEN:
        model[name].freeze()
    model.save(path, trainer=trainer)
    other = model_of(1)
    other["b"].freeze()  # as the script began, and not as the run had gone on
    resumed = eb.Adam(other)
    other.load(path, trainer=resumed)
    assert frozen(other) == FROZEN
    before = values(model)
    for run, optimizer in ((model, trainer), (other, resumed)):
        for row in range(3):
            with eb.Graph(policy="sufficient"):
                x = eb.concatenate([run["embed"][row], run["embed"][row + 1][:1]])
                loss = eb.sum(eb.tanh(run["V"] @ x)) + eb.sum(run["W"] @ x) + eb.sum(run["b"]) * run["n"]
            loss.backward()
            optimizer.update()
    assert same(values(model), values(other))
    assert all(np.array_equal(before[name], other[name].value()) == (name in FROZEN) for name in before)


def test_loading_without_a_trainer_freezes_and_does_not_unfreeze(saved):
    model, _, path = saved
    model.freeze()
    model.load(path)
    assert frozen(model) == set(values(model))  # the file is of a model in which nothing was
    model.freeze(False)
    for name in FROZEN:
        model[name].freeze()
    model.save(path)
    other = model_of(1)
    other.load(path)
    assert frozen(other) == FROZEN
    part = eb.ParameterCollection()
    part.sub("encoder").add_lookup_parameters((7, 2), name="embed")
    part.sub("encoder").load(path, strict=False)
    assert frozen(part) == {"encoder.embed"}


def test_metadata_and_random_state(tmp_path):
    path = tmp_path / "m.safetensors"
    model, rng = model_of(), np.random.default_rng(7)
    rng.standard_normal(3)
    model.save(path, metadata={"epoch": 3, "rng": rng.bit_generator.state, "curve": [0.1, 1 / 3]})
    want = rng.standard_normal(5)
    metadata = model.load(path).metadata
    assert (metadata["epoch"], metadata["curve"]) == (3, [0.1, 1 / 3])
    again = np.random.default_rng()
    again.bit_generator.state = metadata["rng"]
    np.testing.assert_array_equal(again.standard_normal(5), want)


def test_the_policy_is_beside_it(tmp_path):
    path = tmp_path / "m.safetensors"
    model = model_of()
    model.save(path, policy=eb.get_policy("agenda"))
    checkpoint = model.load(path)
    assert checkpoint.policy == tmp_path / "m.policy.json"
    with eb.Graph(policy=checkpoint.policy) as graph:
        (model["b"] * 2).value()
    assert graph.policy.name == "agenda"


def test_all_differences_are_named_at_once(saved):
    _, _, path = saved
    other = eb.ParameterCollection(seed=1)
    other.add_parameters((2, 4), name="W")
    other.add_parameters((4, 3), name="V", init=0.0)
    other.add_parameters(5, name="c")
    trainer = eb.Adam(other)
    before = values(other)
    with pytest.raises(eb.EdBatchError) as error:
        other.load(path, trainer=trainer)
    text = str(error.value)
    assert text.startswith(f"{path}: does not fit, nothing was loaded: ")
    for part in (
        "c: float32[5] in the model, not in the file",
        "W: float32[2, 3] in the file, float32[2, 4] in the model",
        "b: float32[5] in the file, not in the model",
        "embed: float32[7, 2] in the file, not in the model",
        "trainer/mean/W: float32[2, 3] in the file, float32[2, 4] here",
        "trainer/mean_square/b: in the file, but not here",
    ):
        assert part in text
    assert "V:" not in text
    assert same(values(other), before)
    assert trainer.steps == 0

    checkpoint = other.load(path, trainer=trainer, strict=False)
    assert sorted(name for name in checkpoint.left if "/" not in name) == ["W", "b", "c", "embed", "n"]
    np.testing.assert_array_equal(other["V"].value(), saved[0]["V"].value())
    np.testing.assert_array_equal(other["W"].value(), before["W"])
    assert trainer.state()[1]["updates"] == {"V": 2}


def test_trainers_differ(saved):
    model, trainer, path = saved
    with pytest.raises(eb.EdBatchError, match="trainer/optimizer: Adam in the file, SGD here"):
        model.load(path, trainer=eb.SGD(model))
    model.load(path)  # a file with a trainer is loaded without one
    model.save(path)
    with pytest.raises(eb.EdBatchError, match="trainer: not in the file"):
        model.load(path, trainer=trainer)
    assert trainer.steps == 2


def test_any_bit_that_changed_is_noticed_and_any_length_that_is_missing(tmp_path):
    """Of names, shapes, dtypes, counts, metadata and the checksum as of tensors: an error, and nothing has changed."""
    path = tmp_path / "m.safetensors"
    model = eb.ParameterCollection(seed=0)
    model.add_parameters((2, 1), name="W")
    model.add_parameters(3, name="b")
    model.add_lookup_parameters((7, 2), name="embed")
    trainer = eb.Momentum(model)
    train(model, trainer, 2)
    model.save(path, trainer=trainer, metadata={"epoch": 3})
    whole = path.read_bytes()
    train(model, trainer, 1)
    before, state = values(model), trainer.state()

    def refuses(damaged, what):
        path.write_bytes(damaged)
        for strict in (True, False):
            try:
                model.load(path, trainer=trainer, strict=strict)
            except eb.EdBatchError:
                continue
            raise AssertionError(f"loaded with {what}")

    for at in [*range(100), *range(100, len(whole), 3)]:
        for bit in range(8) if at < 16 else (at % 8,):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            refuses(damaged, f"bit {bit} of byte {at} changed: {whole[at - 20 : at + 20]!r}")
    for size in [*range(20), *range(20, len(whole), 5), len(whole) - 1]:
        refuses(whole[:size], f"{size} of {len(whole)} bytes")
    assert same(values(model), before)
    assert same(trainer.state()[0], state[0])
    assert trainer.state()[1] == state[1]
    path.write_bytes(whole)
    assert model.load(path, trainer=trainer).metadata == {"epoch": 3}


def test_a_checksum_is_required(saved):
    model, _, path = saved
    for header in ({"edbatch_checkpoint": "2"}, {"edbatch_metadata": "{}"}):
        path.write_bytes(safetensors.numpy.save(values(model), header))
        with pytest.raises(eb.EdBatchError, match="its checksum is missing"):
            model.load(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"checkpoint": "3"}, "version 3, this EdBatch reads version 2"),
        ({"checkpoint": "new"}, "version new"),
        ({"checkpoint": ""}, "version missing"),
        ({"metadata": "{"}, "damaged header entry 'metadata'"),
        ({"metadata": "[" * 100_000}, "damaged header entry 'metadata'"),
        ({"metadata": "[1" + "0" * 5000 + "]"}, "damaged header entry 'metadata'"),
        ({"metadata": "[1]"}, "damaged header entry 'metadata' .no object"),
        ({"frozen": '{"names": "W"}'}, "damaged header entry 'frozen' .'W'"),
        ({"frozen": '{"names": [1]}'}, "damaged header entry 'frozen' ..1."),
        ({"frozen": "{}"}, "damaged header entry 'frozen' .None"),
        ({"trainer": '{"optimizer": "Adam", "steps": -1}'}, "are not those of a trainer"),
        ({"trainer": '{"optimizer": "Adam", "steps": 1, "skipped": 0, "updates": {"W": "x"}}'}, "are not those of"),
        ({"trainer": '{"optimizer": "Adam", "steps": true, "skipped": 0, "updates": {}}'}, "are not those of"),
        ({"trainer": f'{{"optimizer": "Adam", "steps": {2**63}, "skipped": 0, "updates": {{}}}}'}, "are not those of"),
    ],
)
def test_headers_that_are_not_as_they_should_be(saved, header, message):
    model, trainer, path = saved
    entries = {"checkpoint": str(VERSION)} | header
    header = {MARK + key: entry for key, entry in entries.items()} | {KEY: BLANK}
    path.write_bytes(sealed(safetensors.numpy.save(values(model), header)))
    with pytest.raises(eb.EdBatchError, match=message):
        model.load(path, trainer=trainer)


def test_a_full_disk_leaves_the_previous_file(saved, monkeypatch):
    model, _, path = saved
    whole = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(eb.EdBatchError, match=r"m.safetensors: cannot be written \(No space left on device\)"):
        model.save(path)
    assert path.read_bytes() == whole
    assert os.listdir(path.parent) == [path.name]


SAVING = """
import itertools, sys
import edbatch as eb
from tests.arrays import beside
model = eb.ParameterCollection()
W = model.add_parameters((300, 300), name="W", init=0.0)
trainer = eb.Momentum(model, lr=1.0, momentum=0.0)
for step in itertools.count(1):
    W.accumulator()[0][...] = -1
    trainer.update()
    model.save(sys.argv[1], trainer=trainer, metadata={"step": step})
    print(step, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
@pytest.mark.cpu
def test_a_kill_leaves_a_whole_file(tmp_path):
    path = tmp_path / "m.safetensors"
    model = eb.ParameterCollection()
    W = model.add_parameters((300, 300), name="W")
    trainer = eb.Momentum(model)
    wait = random.Random(1)
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", SAVING, path], stdout=subprocess.PIPE, text=True) as process:
            last = int(process.stdout.readline())
            time.sleep(wait.uniform(0.0, 0.05))
            process.send_signal(signal.SIGKILL)
            for line in process.stdout:
                last = int(line) if line.endswith("\n") else last
        step = model.load(path, trainer=trainer).metadata["step"]
        assert step in (last, last + 1)  # it may have been killed between saving and saying so
        assert trainer.steps == step
        np.testing.assert_array_equal(W.value(), np.full((300, 300), step))


def test_a_checkpoint_is_of_one_moment_while_another_thread_trains(tmp_path):
    def new():
        model = eb.ParameterCollection()
        parameters = [model.add_parameters((100, 100), name=f"W{at}", init=0.0) for at in range(8)]
        return model, parameters, eb.SGD(model, lr=1.0)

    model, parameters, trainer = new()
    over, ones = threading.Event(), np.ones((100, 100))

    def train():
        while not over.is_set():
            for parameter in parameters:
                parameter.set_grad(ones)
            trainer.update()  # after n updates every entry is -n

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(20):
            model.save(tmp_path / "m", trainer=trainer)
            found, loaded, other = new()
            found.load(tmp_path / "m", trainer=other)
            values = {float(x) for parameter in loaded for x in np.unique(parameter.value())}
            assert values == {-other.state()[1]["steps"]}
    finally:
        over.set()
        thread.join()
