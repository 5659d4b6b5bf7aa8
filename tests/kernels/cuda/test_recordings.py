"""Recordings: made the third time, bounded, and never served for what is not the same."""

import contextlib
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

import edbatch as eb
from edbatch.compiling.array_table import ArrayTable
from edbatch.graph.cell.stacking import stacked
from edbatch.graph.options import Options
from edbatch.kernels.backend import Lists
from edbatch.kernels.cuda.recordings import Recordings
from edbatch.kernels.program import ARGUMENT_OF, DISPATCH, POSITION, PROGRAM_RANGE, SLOT, STEP, Dispatch
from edbatch.kernels.row_kernels import adding_rows
from edbatch.kernels.tables import Memory, Programs
from edbatch.memory.plan.addresses import COLUMNS, ROWS, SAVING, SCATTERED
from edbatch.memory.plan.format import BATCH, OPERAND, SEGMENT, Plan


class Driver:
    """Notes what is recorded, and what of it runs."""

    name = "cuda:0"

    def __init__(self):
        self.ran, self.into = [], None

    def do(self, what):
        (self.ran if self.into is None else self.into).append(what)

    @contextlib.contextmanager
    def capture(self):
        work = self.into = []
        yield type("Recording", (), {"launch": lambda _: self.ran.extend(work)})()
        self.into = None


def counts(recordings):
    return recordings.recorded, recordings.replayed, recordings.dropped


def test_what_comes_again_is_recorded():
    driver = Driver()
    recordings = Recordings(driver)
    seen = []
    for key, work in [(b"a", 1), (b"b", 2), (b"a", 3), (b"a", 4), (b"a", 5), (b"b", 6), (b"b", 7)]:
        recordings.run(key, lambda _, work=work: driver.do(work))
        seen.append(counts(recordings))
    # The recording of the third time is what the fourth runs.
    assert driver.ran == [1, 2, 3, 4, 4, 6, 7]
    assert [recorded for recorded, *_ in seen] == [0, 0, 0, 1, 1, 1, 2]
    assert [replayed for _, replayed, _ in seen] == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("n", [20, 40, 200])
def test_mini_batches_in_turns_are_served(n):
    """Whether there is room for all of them or not, forward and backward."""
    recordings = Recordings(Driver(), capacity=32)
    for epoch in range(5):
        for key in range(2 * n):
            recordings.run(b"%d" % key, lambda _: None)
        if epoch == 1:
            assert counts(recordings) == (0, 0, 0)
    kept = min(2 * n, 32)
    assert counts(recordings) == (kept, 2 * kept, 0)


def test_recording_stops_where_nothing_is_served():
    recordings = Recordings(Driver(), capacity=4)
    for key in range(1000):
        for _ in range(3):  # and never again
            recordings.run(b"%d" % key, lambda _: None)
    assert recordings.recorded < 60
    assert recordings.replayed == 0
    for _ in range(200):
        recordings.run(b"a", lambda _: None)
    assert recordings.replayed > 40


def test_an_error_while_recording_leaves_nothing():
    recordings = Recordings(Driver())
    for _ in range(2):
        recordings.run(b"a", lambda _: None)
    with pytest.raises(ZeroDivisionError):
        recordings.run(b"a", lambda _: 1 // 0)
    assert counts(recordings) == (0, 0, 0)


# On a device: what the loops do with it.


@pytest.fixture
def recordings(cuda):
    """How many recordings are made and served from here on: call it."""
    found = cuda.backend.recordings
    before = found.recorded, found.replayed
    with cuda.backend.active(Options()):
        yield lambda: (found.recorded - before[0], found.replayed - before[1])


class Model:
    def __init__(self, device="cuda", dim=5):
        self.model = eb.ParameterCollection(seed=0, device=device)
        self.W, self.V = (self.model.add_parameters((dim, dim), name=name) for name in "WV")
        self.table = self.model.add_lookup_parameters((9, dim), name="table")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + self.V @ eb.lookup(self.table, word))

    @eb.cell
    def score(self, h, label: int):
        return eb.cross_entropy(self.W @ h, label)

    def loss(self, words, labels, x=1.0):
        with eb.Graph(policy="sufficient"):
            losses = []
            for sentence, label in zip(words, labels, strict=True):
                h = eb.input(np.full(5, x))
                for word in sentence:
                    h = self.step(h, word)
                losses.append(self.score(h, label))
            return eb.sum(losses)

    def forward(self, *given):
        return float(self.loss(*given).value())


SENTENCES = [[[1, 2, 3], [4, 5]], [[8, 1, 1], [0, 7]], [[3, 3, 3], [3, 2]], [[0, 1, 8], [8, 8]]]
LABELS = [[0, 1], [4, 4], [2, 0], [3, 1]]
SCALES = [1.0, -0.5, 2.0, 0.0]


def test_other_words_labels_and_inputs_are_the_same_recording(cuda, recordings):
    mine, peer = Model(), Model("cpu")
    for given in zip(SENTENCES * 2, LABELS * 2, SCALES * 2, strict=True):
        assert mine.forward(*given) == pytest.approx(peer.forward(*given), rel=1e-5)
    recorded, replayed = recordings()
    assert recorded <= 2
    assert replayed >= 4
    assert mine.forward(SENTENCES[0][::-1], LABELS[0]) == pytest.approx(peer.forward(SENTENCES[0][::-1], LABELS[0]))


def test_mini_batches_in_any_order_are_served(cuda, recordings):
    """What a backward pass of another structure has left changes no key."""
    mine = Model()
    given = [(SENTENCES[0], LABELS[0]), ([[1], [2, 3], [4, 5, 6]], [0, 1, 2]), ([[7, 8, 1, 2]], [3])]
    order = [0, 1, 2] * 6 + Random(0).choices(range(3), k=24)
    for at, number in enumerate(order):
        if at == 18:
            before = recordings()
        mine.loss(*given[number]).backward()
        mine.model.zero_grad()
    recorded, replayed = (now - then for now, then in zip(recordings(), before, strict=True))
    assert recorded == 0
    assert replayed == 2 * 24


def test_training_is_the_same(cuda, recordings):
    """The way there and the way back are recorded, whatever the words; updates of parameters are seen."""
    mine, peer = Model(), Model("cpu")
    trainers = [eb.SGD(x.model, lr=0.2) for x in (mine, peer)]
    for given in zip(SENTENCES * 2, LABELS * 2, SCALES * 2, strict=True):
        losses = []
        for x, trainer in zip((mine, peer), trainers, strict=True):
            loss = x.loss(*given)
            loss.backward()
            trainer.update()
            losses.append(float(loss.value()))
            del loss
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    recorded, replayed = recordings()
    assert recorded <= 4
    assert replayed >= 8
    for parameter in mine.model:
        np.testing.assert_allclose(parameter.value(), peer.model[parameter.name].value(), rtol=1e-4, atol=1e-6)


def integers(table):
    """A table's, a row for each record."""
    return table.view(table.dtype[0] if table.dtype.names else table.dtype).reshape(len(table), -1)


@pytest.fixture
def keys(cuda, monkeypatch):
    """The keys under which batches would be recorded."""
    found = []
    monkeypatch.setattr(cuda.backend.recordings, "run", lambda key, enqueue: found.append(key))
    return found


def programs(backend, version, adds):
    """No program, and one type whose task is to add rows, or is none."""
    none = (np.zeros(0, dtype) for dtype in (PROGRAM_RANGE, SLOT, ARGUMENT_OF))
    task = adding_rows(np.dtype(np.float32), backend) if adds else Dispatch(0)
    tables = Programs(
        np.array([task], DISPATCH),
        *none,
        np.zeros(0, STEP),
        np.zeros(0, POSITION),
        *(np.zeros(0, np.int64) for _ in range(2)),
    )
    return SimpleNamespace(directory=ArrayTable(tables), version=version, runs_whole=lambda batches: True)


def test_a_key_is_all_that_launches_depend_on(cuda, keys):
    """Whatever changes, the key does: each table, address and setting once."""
    plan = {"batches": np.zeros(2, BATCH), "operands": np.zeros(2, OPERAND), "segments": np.zeros(1, SEGMENT)}
    given = {
        "windows": np.array([(0, 0, 3, -1)], COLUMNS),
        "arenas": np.array([(4096, 3, 1, 2)], ROWS),
        "results": np.zeros(1, np.int32),
        "scattered": np.zeros(1, SCATTERED),
        "words": np.zeros(1, np.int64),
    }
    given |= {"saving": np.zeros(1, SAVING), "scratch": 512, "version": 1, "stop": 2, "address": 1024, "integers": 2048}
    base = {"precision": "float32", "adds": False} | plan | given

    def key(**changed):
        now = base | changed
        table = programs(cuda.backend, now["version"], now["adds"])
        tables = ArrayTable(Plan(*(now[name] for name in plan), np.zeros(4, np.int32), np.zeros(4, np.int32)))
        lists = Lists(now["address"], now["integers"], None)
        memory = Memory(
            *(now[name] for name in ("windows", "arenas", "results")), now["saving"].copy(), now["scattered"],
            now["words"],
        )  # fmt: skip
        with cuda.backend.active(Options(precision=now["precision"])):
            cuda.backend.run_batches(0, now["stop"], tables, lists, ArrayTable(memory), table, now["scratch"])
        return keys.pop()

    want = key()
    assert key() == want
    for name, value in base.items():
        if isinstance(value, np.ndarray):
            for at in np.ndindex(integers(value).shape):
                if (name, at[-1]) != ("batches", 0):  # types: there is but one
                    other = value.copy()
                    integers(other)[at] += 1
                    assert key(**{name: other}) != want, (name, at)
        elif name not in ("precision", "adds"):
            assert key(**{name: value - 1}) != want, name
    assert key(adds=True) != want
    assert len({key(precision=name) for name in ("float32", "tf32", "bf16")}) == 3
    assert key() == want


def test_parameters_that_move_or_change(cuda, recordings):
    """What was recorded is neither served at old addresses, nor with old values."""
    mine, peer = Model(), Model("cpu")
    random = np.random.default_rng(0)

    def check(times=5):
        for _ in range(times):
            values = {name: random.normal(size=mine.model[name].shape) for name in ("W", "table")}
            for x in (mine, peer):
                for name, value in values.items():
                    x.model[name].set_value(value)
            given = SENTENCES[1], LABELS[1]
            assert mine.forward(*given) == pytest.approx(peer.forward(*given), rel=1e-5)

    with eb.options(cells=False):
        check()
        assert stacked([mine.W.spec, mine.V.spec]) is not None
        check()
    check()
    assert recordings()[1] >= 4
