"""Interrupts (Ctrl-C) at a chosen place of what runs inside EdBatch."""

import _thread
import signal
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

import edbatch
from edbatch import devices
from edbatch.base import locking
from edbatch.base.stopwatch import compiling
from edbatch.graph import options
from edbatch.graph.expression import driven
from edbatch.graph.model import writes
from edbatch.graph.opened import graphs
from edbatch.graph.recorder import IN_C
from edbatch.kernels.cpu import blas_threads, thread_pool

FOLDER = str(Path(edbatch.__file__).parent)
FOREVER = sys.maxsize
NOT_RUNNING = locking._running
BLOCKS = (graphs, options._blocks, devices._blocks, writes.running)


def end_blocks():
    """End blocks that are open."""
    for blocks in BLOCKS:
        for block in blocks:
            block.value = None


def expect_none_open():
    """No block is open, of whatever kind: none is ended here, but those that only C ends for certain."""
    if not IN_C:
        end_blocks()
        return
    left = [block.value for blocks in BLOCKS for block in blocks if block.value is not None]
    assert not left
    assert locking._running is NOT_RUNNING
    assert not NOT_RUNNING.locked()
    assert not locking.lock._is_owned()  # another thread would wait for ever
    assert compiling._depth == 0
    assert not driven.get()
    assert thread_pool.device().item(thread_pool.SHARED) == 0
    assert threads_of_blas() == known_threads()


def threads_of_blas():
    return [control.get() for control in blas_threads.controls()]


@cache
def known_threads():
    return threads_of_blas()


def reuse_memory():
    """Fill what NumPy has freed: who still has the address of a small array that is gone reads NaN or -1 there."""
    for size in range(4, 1024, 4):  # of these NumPy keeps seven each; addresses are of numbers of 4 and 8 bytes
        for array in [np.empty(size, np.uint8) for _ in range(7)]:
            array.fill(0xFF)


class _Sent(int):
    """A signal that has come when `now` was read. Python calls its handler where it next looks, as for any signal.

    No function is called for it, after which, or in which, Python would look at once.
    """

    now = property(_thread.interrupt_main)


INTERRUPT = _Sent(signal.SIGINT)


class Interrupt:
    """A real signal that comes before the n-th line that runs inside EdBatch, or the n-th bytecode that runs at all.

    Attributes:
        passed: how many lines, or bytecodes, have run.
        places: numbers of the bytecodes that were the first, or the last, at their place in a function.
    """

    def __init__(self, at, bytecodes=False):
        known_threads()  # before anything is interrupted
        self.at = at
        self.passed = 0
        self.bytecodes = bytecodes
        self._numbers = {}  # the first and the last, by code and place in it

    def run(self, function):
        """Call a function; whether it was interrupted."""
        before, handled = sys.gettrace(), sys.exc_info()[1]
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # as on a terminal
        sys.settrace(self._frame)
        try:
            function()
            sys.settrace(None)
            if self.passed >= self.at:  # it came inside a finalizer, and is sent once more, by a thread that may wait
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
            signal.signal(signal.SIGINT, handler)
        assert sys.exc_info()[1] is handled
        return interrupted

    @property
    def places(self):
        return sorted({number for numbers in self._numbers.values() for number in numbers})

    def _frame(self, frame, event, _):
        if self.bytecodes:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif not frame.f_code.co_filename.startswith(FOLDER):
            return None
        return self._event

    def _event(self, frame, event, _):
        if event in ("line", "opcode"):
            self.passed += 1
            if self.bytecodes:
                first, _ = self._numbers.get((frame.f_code, frame.f_lasti), (self.passed, 0))
                self._numbers[frame.f_code, frame.f_lasti] = first, self.passed
            if self.passed == self.at:
                sys.settrace(None)
                INTERRUPT.now  # noqa: B018 (from here on, nothing is called)
        return self._event
