"""Data that workers read: each its own samples, the process that has the run none; the numbers stay those of one."""

import json
import os
import signal
from collections import Counter

import pytest

from edbatch import EdBatchError
from edbatch.distributed import Recipe, train
from tests.distributed.nets import SAMPLES, difference, started


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


@pytest.mark.cpu
def test_one_process_reads_it_as_any_data(tmp_path):
    (tmp_path / "data").mkdir()
    run, whole = started(tmp_path / "a", data=Recipe(File(tmp_path / "data"))), started(tmp_path / "b")
    list(run.epochs(1)), list(whole.epochs(1))
    assert difference(run, whole) == 0


@pytest.mark.cpu
@pytest.mark.slow
def test_each_worker_reads_its_own_samples(one_cluster, tmp_path):
    """Once an epoch, and the process that has the run none."""
    (tmp_path / "data").mkdir()
    file, whole = File(tmp_path / "data"), started(tmp_path / "whole", policy="sufficient")
    list(whole.epochs(2))
    run = started(tmp_path / "run", data=Recipe(file), policy="sufficient")
    list(train(run, 2, workers=2))
    assert difference(run, whole) < 1e-5
    reads = file.reads()
    processes = {process for process, _ in reads}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert Counter(number for _, number in reads) == dict.fromkeys(range(26), 2)
    assert max(Counter(process for process, _ in reads).values()) < 0.65 * len(reads)


@pytest.mark.cpu
@pytest.mark.slow
def test_a_worker_that_is_killed_as_it_reads(one_cluster, tmp_path):
    (tmp_path / "data").mkdir()

    class Deadly(File):
        def __getitem__(self, number):
            found = super().__getitem__(number)
            if number in (4, 9) and [n for _, n in self.reads()].count(number) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
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
def test_a_sample_that_cannot_be_read_there(one_cluster, tmp_path):
    (tmp_path / "data").mkdir()
    file = File(tmp_path / "data")
    text = file.path.read_bytes().splitlines(keepends=True)
    text[11] = json.dumps(["unreadable", 0]).encode() + b"\n"
    file.offsets = [sum(map(len, text[:at])) for at in range(27)]
    file.path.write_bytes(b"".join(text))
    run = started(tmp_path / "run", data=Recipe(file), policy="sufficient", save_every=1)
    with pytest.raises(EdBatchError, match=r"^train: sample 11 cannot be read \(OSError: the disk is gone\)") as error:
        list(train(run, 1))
    assert isinstance(error.value.__cause__, OSError)
