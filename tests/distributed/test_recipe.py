"""Data that workers read: each its own samples, the process that has the run none; the numbers stay those of one."""

import json
import os
import signal
from collections import Counter

import numpy as np
import pytest

from edbatch import EdBatchError
from edbatch.distributed import Recipe, train
from tests.distributed.nets import SAMPLES, difference, started

LENGTHS = [len(words) for words, _ in SAMPLES]


class File:
    """Samples of a file, of which this has the offsets; each look is noted in another file."""

    def __init__(self, folder):
        self.path, self.log = folder / "samples.jsonl", folder / "log.txt"
        self.offsets = [0]
        with open(self.path, "wb") as file:
            for sample in SAMPLES:
                file.write(json.dumps(sample).encode() + b"\n")
                self.offsets.append(file.tell())

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, number):
        with open(self.log, "a") as log:
            log.write(f"{os.getpid()} {number}\n")
        with open(self.path, "rb") as file:
            file.seek(self.offsets[number])
            words, label = json.loads(file.readline())
        if words == "unreadable":
            raise OSError("the disk is gone")
        return words, label

    def reads(self):
        """(process, number of the sample) of each look."""
        return [tuple(map(int, line.split())) for line in self.log.read_text().splitlines()]


def test_what_is_no_data():
    for bad in (3, "file.txt", {0: 1}, iter([1])):
        with pytest.raises(EdBatchError, match=r"^Recipe: data: expected len\(data\) and data\[number\], got "):
            Recipe(bad)
    assert list(Recipe(range(3))) == [0, 1, 2]


@pytest.mark.cpu
def test_one_process_reads_it_as_any_data(tmp_path):
    (tmp_path / "data").mkdir()
    run, whole = started(tmp_path / "a", data=Recipe(File(tmp_path / "data"))), started(tmp_path / "b")
    list(run.epochs(1)), list(whole.epochs(1))
    assert difference(run, whole) == 0


@pytest.fixture(scope="module")
def one_cluster():
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
        yield
        ray.shutdown()


@pytest.mark.cpu
@pytest.mark.slow
@pytest.mark.parametrize("nodes", [LENGTHS, np.array(LENGTHS), None, lambda sample: len(sample[0])])
def test_each_worker_reads_its_own_samples(one_cluster, tmp_path, nodes):
    """Once an epoch; where sizes are not given, each once before."""
    (tmp_path / "data").mkdir()
    file, whole = File(tmp_path / "data"), started(tmp_path / "whole", policy="sufficient")
    list(whole.epochs(2))
    run = started(tmp_path / "run", data=Recipe(file), policy="sufficient")
    training = train(run, 2, workers=2, nodes=nodes)
    list(training)
    assert difference(run, whole) < 1e-5
    reads = file.reads()
    processes = {process for process, _ in reads}
    assert len(processes) == 2
    assert os.getpid() not in processes
    times = Counter(number for _, number in reads)
    counted = nodes is None or callable(nodes)
    assert times == dict.fromkeys(range(26), 3 if counted else 2)
    of_each = Counter(process for process, _ in reads)
    assert max(of_each.values()) < 0.65 * len(reads)
    assert training.report.balance < 1.5


@pytest.mark.cpu
@pytest.mark.slow
def test_a_worker_that_is_killed_as_it_counts_or_reads(one_cluster, tmp_path):
    (tmp_path / "data").mkdir()

    class Deadly(File):
        def __getitem__(self, number):
            found = super().__getitem__(number)
            if number in (4, 9) and [n for _, n in self.reads()].count(number) == number // 4:
                os.kill(os.getpid(), signal.SIGKILL)  # 4 as it is counted, 9 as it is learned from
            return found

    whole = started(tmp_path / "whole", policy="sufficient")
    list(whole.epochs(1))
    run = started(tmp_path / "run", data=Recipe(Deadly(tmp_path / "data")), policy="sufficient")
    training = train(run, 1, workers=2, timeout=120)
    list(training)
    assert training.report.replaced == 2
    assert difference(run, whole) < 1e-5


@pytest.mark.cpu
@pytest.mark.slow
@pytest.mark.parametrize("nodes", [LENGTHS, None])
def test_a_sample_that_cannot_be_read_there(one_cluster, tmp_path, nodes):
    (tmp_path / "data").mkdir()
    file = File(tmp_path / "data")
    text = file.path.read_bytes().splitlines(keepends=True)
    text[11] = json.dumps(["unreadable", 0]).encode()
    text[11] += b" " * (file.offsets[12] - file.offsets[11] - len(text[11]) - 1) + b"\n"
    file.offsets = np.cumsum([0, *map(len, text)]).tolist()
    file.path.write_bytes(b"".join(text))
    run = started(tmp_path / "run", data=Recipe(file), policy="sufficient", save_every=1)
    with pytest.raises(EdBatchError, match=r"^train: sample 11 cannot be read \(OSError: the disk is gone\)") as error:
        list(train(run, 1, nodes=nodes))
    assert isinstance(error.value.__cause__, OSError)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (3, "expected a function of a sample, or sizes of all, got 3"),
        ([1, 2], "expected the sizes of 26 samples, got 2"),
        ([-1] * 26, "expected a number of nodes of sample 0, got -1"),
        ("a" * 26, "expected a function of a sample, or sizes of all, got 'aaa"),
    ],
)
@pytest.mark.cpu
def test_sizes_that_are_none(tmp_path, nodes, message):
    pytest.importorskip("ray")
    with pytest.raises(EdBatchError, match=rf"^train: nodes: {message}"):
        train(started(tmp_path), 1, nodes=nodes)
