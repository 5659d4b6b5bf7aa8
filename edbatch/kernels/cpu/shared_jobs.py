"""Jobs shared among threads, inside compiled loops: who asks for one takes parts of it, and so do others that wait.

One word says which part of which job is next; whoever adds 1 to it does that part. Threads that wait for work look at
the word for some ten microseconds, as long as the steps of a run take, and then sleep until there is a job again.

How many threads are worth it is measured at each job: what a thread computes while others do as much is what it would
have had to compute alone. Where cores are busy with something else, it waits for others longer than they save it, and
does its jobs alone for a while: so long that trying again costs a twentieth of the time at most.
"""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.atomics import (
    add_word,
    exchanged,
    pause,
    put_record,
    put_word,
    read_clock,
    record_at,
    unlock,
    wait_for_lock,
    word_at,
)
from edbatch.kernels.cpu.partitions import NONE, Job, do_part

# Of the table of a CPU, after the addresses of BLAS' functions: the address of the words that threads share, or 0; how
# many jobs there were for which there were no threads; and `products.Gemm.small`.
SHARED, WANTED, SMALL = 2, 3, 4

LINE = 64  # bytes that processors exchange
# Where things are among the shared words, each line of them written by others.
NEXT = 0  # the number of the job, its parts, and the next of these
DONE = LINE  # parts that others have done
STOP, LIMIT = 2 * LINE, 2 * LINE + 8  # whether all threads end; how many take part, with the one that asks
# What only the thread that asks looks at: the most that take part, and until when they are not changed; of the jobs
# since it was judged what they would have taken alone, and what they took; what the clock showed; Python's functions.
MOST, UNTIL, ALONE, TAKEN, SECONDS, NANOSECONDS = (3 * LINE + 8 * at for at in range(6))
ACQUIRE, RELEASE, CLOCK, CLOCK_KIND, JUDGED = (4 * LINE + 8 * at for at in range(5))
JOB = 5 * LINE  # three lines
THREADS = 8 * LINE  # a line for each: whether it sleeps, and its lock

PATIENCE = 2000  # times that a thread looks for work before it sleeps, about 50 us
WINDOW, REST = 2_000_000, 20_000_000  # ns: of jobs that are judged together, and the least until the next trial
TRIAL = 20  # times what was lost in a trial passes until the next one


@compiled(error_model="numpy")
def share(device: np.ndarray, job: Job) -> None:
    """Do all parts of a job, with others where there are any."""
    shared = device[SHARED]
    if shared == 0:
        device[WANTED] += 1
    if shared == 0 or not _may_try(shared):
        for part in range(job.parts):
            do_part(job, part)
        return
    start = _now(shared)
    put_record(shared + JOB, job)
    put_word(shared + DONE, 0)
    put_word(shared + NEXT, (((word_at(shared + NEXT) >> 32) + 1) << 32) | (job.parts << 16))
    for number in range(1, min(word_at(shared + LIMIT), job.parts)):
        if exchanged(shared + THREADS + LINE * number, 1, 0):
            unlock(word_at(shared + RELEASE), word_at(shared + THREADS + LINE * number + 8))
    own, part = 0, _taken(shared)
    while part >= 0:
        do_part(job, part)
        own += 1
        part = _taken(shared)
    finished = _now(shared)
    while word_at(shared + DONE) + own < job.parts:
        pause()
    if own > 0 and word_at(shared + JUDGED):
        _judge(shared, (finished - start) * job.parts // own, start, _now(shared))


@compiled(error_model="numpy", nogil=True)
def attend(shared: int, number: int) -> None:
    """What a thread does until all end: parts of jobs."""
    me, waited = shared + THREADS + LINE * number, 0
    while not word_at(shared + STOP):
        part = _taken(shared) if number < word_at(shared + LIMIT) else -1
        if part >= 0:
            do_part(record_at(shared + JOB, NONE), part)
            add_word(shared + DONE, 1)
            waited = 0
            continue
        waited += 1
        if waited < PATIENCE:
            pause()
            continue
        waited = 0
        put_word(me, 1)
        # What came before this was seen is done at once; whoever comes later, or has seen it, unlocks.
        if (word_at(shared + STOP) or _is_left(word_at(shared + NEXT))) and exchanged(me, 1, 0):
            continue
        wait_for_lock(word_at(shared + ACQUIRE), word_at(me + 8), 1)


@compiled(error_model="numpy")
def _is_left(word: int) -> bool:
    return word & 0xFFFF < word >> 16 & 0xFFFF


@compiled(error_model="numpy")
def _taken(shared: int) -> int:
    """The number of a part that is to be done now by this thread; -1: none is left."""
    word = word_at(shared + NEXT)
    while _is_left(word):
        if exchanged(shared + NEXT, word, word + 1):
            return word & 0xFFFF
        word = word_at(shared + NEXT)
    return -1


@compiled(error_model="numpy")
def _now(shared: int) -> int:
    read_clock(word_at(shared + CLOCK), word_at(shared + CLOCK_KIND), shared + SECONDS)
    return word_at(shared + SECONDS) * 10**9 + word_at(shared + NANOSECONDS)


@compiled(error_model="numpy")
def _may_try(shared: int) -> bool:
    if word_at(shared + LIMIT) > 1:
        return True
    if _now(shared) < word_at(shared + UNTIL):
        return False
    put_word(shared + LIMIT, 2)
    return True


@compiled(error_model="numpy")
def _judge(shared: int, alone: int, start: int, end: int) -> None:
    """Have fewer threads where they do not pay, and more where they may.

    Args:
        alone: what a job would have taken alone.
        start, end: when it began and ended.
    """
    alone += word_at(shared + ALONE)
    taken = end - start + word_at(shared + TAKEN)
    put_word(shared + ALONE, alone)
    put_word(shared + TAKEN, taken)
    if alone < WINDOW and taken < alone + WINDOW // 2:
        return
    put_word(shared + ALONE, 0)
    put_word(shared + TAKEN, 0)
    limit = word_at(shared + LIMIT)
    if 10 * taken > 9 * alone:
        put_word(shared + LIMIT, max(1, limit // 2))
        put_word(shared + UNTIL, end + max(REST, TRIAL * (taken - alone)))
    elif limit < word_at(shared + MOST) and end >= word_at(shared + UNTIL):
        put_word(shared + LIMIT, min(word_at(shared + MOST), 2 * limit))
        put_word(shared + UNTIL, end + REST)
