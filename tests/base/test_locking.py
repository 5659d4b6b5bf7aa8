"""Interrupts that compiled code made something else of."""

import signal
import sys

import pytest

from edbatch.base.locking import signals_deferred, synchronized


def test_an_interrupt_stays_one_however_many_functions_it_went_through():
    @synchronized
    def run():
        try:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as error:
                raise SystemError("unpickle returned a result with an exception set") from error
        except SystemError as error:
            raise SystemError("loop returned a result with an exception set") from error

    with pytest.raises(KeyboardInterrupt):
        run()


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1]


class Came(Exception):
    """A signal's handler ran."""


@pytest.fixture
def handlers():
    """Each raises; those of before are put back."""

    def handler(number, frame):
        raise Came(number)

    before = {number: signal.signal(number, handler) for number in SIGNALS}
    yield handler
    for number, one in before.items():
        signal.signal(number, one)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_for_the_end_of_the_block(handlers, number):
    done = []
    with pytest.raises(Came) as raised:  # noqa: PT012
        with signals_deferred():
            signal.raise_signal(number)
            with signals_deferred():
                signal.raise_signal(number)
            done.append(1)
        done.append(2)
    assert (done, raised.value.args) == ([1], (number,))
    assert all(signal.getsignal(one) is handlers for one in SIGNALS)


def test_all_that_came_are_sent(handlers):
    found = []
    try:
        with signals_deferred():
            for number in SIGNALS:
                signal.raise_signal(number)
    except Came as error:
        while error is not None:
            found.append(error.args[0])
            error = error.__context__
    assert sorted(found) == sorted(SIGNALS)
    assert all(signal.getsignal(one) is handlers for one in SIGNALS)


def test_a_signal_at_every_line_of_the_block_leaves_the_handlers_as_they_were(handlers):
    """Also while they are being exchanged."""
    code = {signals_deferred.__enter__.__code__, signals_deferred.__exit__.__code__, signals_deferred._restore.__code__}

    def run(at, number):
        passed = [0]

        def see(frame, kind, about):
            if frame.f_code in code and kind == "line":
                passed[0] += 1
                if passed[0] == at:
                    signal.raise_signal(number)
            return see

        sys.settrace(see)
        try:
            with signals_deferred():
                pass
        except Came:
            pass
        finally:
            sys.settrace(None)
        return passed[0] >= at

    for number in (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1):
        at = 1
        while run(at, number):
            assert all(signal.getsignal(one) is handlers for one in SIGNALS), (at, number)
            at += 1
        assert at > 15
