"""Interrupts that compiled code made something else of."""

import pytest

from edbatch.base.exclusive import exclusive


def test_an_interrupt_stays_one_however_many_functions_it_went_through():
    @exclusive
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
