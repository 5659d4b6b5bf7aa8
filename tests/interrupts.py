"""Interrupts (Ctrl-C) at a chosen line of what runs inside EdBatch."""

import linecache
import signal
import sys
import time
from pathlib import Path

import numpy as np

import edbatch
from edbatch.base.exclusive import lock
from edbatch.graph.opened import graphs

FOLDER = str(Path(edbatch.__file__).parent)
FOREVER = sys.maxsize


def end_blocks():
    """End graphs that are open: a signal as an `__exit__` begins leaves one so, which Python cannot prevent."""
    for block in graphs:
        block.value = None


def _alone(function):
    """A generator that calls a function: what was being handled when it was left is forgotten with it.

    An error of a tracing function at the `pass` of an `except` leaves the exception that it handles the current one of
    the thread, and the context of all later errors; a signal without one cannot come there.
    """
    yield function()


def reuse_memory():
    """Fill what NumPy has freed: who still has the address of a small array that is gone reads NaN or -1 there."""
    for size in range(4, 1024, 4):  # of these NumPy keeps seven each; addresses are of numbers of 4 and 8 bytes
        for array in [np.empty(size, np.uint8) for _ in range(7)]:
            array.fill(0xFF)


class Interrupt:
    """Sends a real signal before the n-th line that runs inside EdBatch, whoever handles it then.

    Attributes:
        lines: how many have run.
    """

    def __init__(self, at):
        self.at = at
        self.lines = 0
        # `with` statements, of the frames that run: they have an event at their end, too, where no signal can come.
        self._entered = set()
        self._begins = {}  # first instructions, by code and line

    def run(self, function):
        """Call a function; whether it was interrupted."""
        before, handled = sys.gettrace(), sys.exc_info()[1]
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # as on a terminal
        sys.settrace(self._frame)
        try:
            next(_alone(function))
            sys.settrace(None)
            if self.lines >= self.at:  # it came inside a finalizer, and is sent once more, by a thread that may wait
                for _ in range(300):
                    time.sleep(0.01)
        except KeyboardInterrupt:
            interrupted = True
            reuse_memory()
        else:
            interrupted = False
        finally:
            sys.settrace(before)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert not lock._is_owned()  # another thread would wait for ever
            signal.signal(signal.SIGINT, handler)
        assert sys.exc_info()[1] is handled
        return interrupted

    def _frame(self, frame, event, _):
        return self._line if frame.f_code.co_filename.startswith(FOLDER) else None

    def _line(self, frame, event, _):
        if event == "line" and not self._leaves_with(frame) and not self._is_a_turn(frame):
            self.lines += 1
            if self.lines == self.at:
                signal.raise_signal(signal.SIGINT)
        elif event == "return":  # perhaps by an exception, out of a `with`; the next frame may have the same id
            self._entered = {place for place in self._entered if place[0] != id(frame)}
        return self._line

    def _leaves_with(self, frame):
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        if not line.startswith("with "):
            return False
        place = id(frame), frame.f_lineno
        seen = place in self._entered
        (self._entered.discard if seen else self._entered.add)(place)
        return seen

    def _is_a_turn(self, frame):
        """Whether a comprehension goes on: since Python 3.12 it has an event at each turn, in its function's frame.

        What a tracing function raises there passes the `__exit__` of a `with` statement by; a signal does not.
        """
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        first = self._begins.setdefault((frame.f_code, frame.f_lineno), frame.f_lasti)
        return frame.f_lasti > first and " for " in line and not line.lstrip().startswith("for ")
