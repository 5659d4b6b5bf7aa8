"""What time went into."""

import time

from edbatch.base.stopwatch import Clock, compiling, working_time


def test_waiting_for_compilation_is_no_work():
    begun, clock = working_time(), Clock({})
    with compiling:
        time.sleep(0.2)
    assert 0 <= working_time() - begun < 0.1
    time.sleep(0.02)
    assert working_time() - begun >= 0.02
    clock.stop("sleeping")
    assert clock.seconds["compilation"] >= 0.2
    assert 0.02 <= clock.seconds["sleeping"] < 0.1
