"""What time went into."""

import time

from edbatch.base.stopwatch import Moment, compiling


def test_waiting_for_compilation_is_no_work():
    begun = Moment.now()
    with compiling:
        time.sleep(0.2)
    assert 0 <= begun.worked() < 0.1
    time.sleep(0.02)
    assert begun.worked() >= 0.02
