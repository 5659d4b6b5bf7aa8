"""Directories: the same tables, in Python and in compiled code."""

from typing import NamedTuple

import numpy as np
import pytest

from edbatch.base.records import record_type
from edbatch.compiling.array_table import BOOL, INT32, ArrayTable, reader
from edbatch.compiling.compiled import at_once, compiled
from tests.fake_device import in_python

PAIR = record_type(("a", "b"), np.int32)


class Tables(NamedTuple):
    pairs: np.ndarray
    numbers: np.ndarray
    flags: np.ndarray


read = reader(Tables, PAIR, INT32, BOOL)


@compiled(small=True)
def summed(entries):
    tables = read(entries)
    total = 0
    for at in range(len(tables.pairs)):
        if tables.flags[at]:
            total += tables.pairs[at]["a"] * tables.numbers[at]
        tables.pairs[at]["b"] = total
    return total


@pytest.fixture(params=[in_python, at_once])
def how(request):
    with request.param():
        yield


def test_tables_are_read_and_written(how):
    pairs = np.array([(1, 0), (2, 0), (3, 0)], PAIR)
    made = ArrayTable((pairs, np.array([10, 20, 30], np.int32), np.array([True, False, True])))
    assert summed(made.entries) == 100
    assert pairs["b"].tolist() == [10, 10, 100]
    assert made.tables[0] is pairs


def test_what_is_read_only_has_an_address_too():
    array = np.arange(4)
    array.flags.writeable = False
    assert ArrayTable((array,)).entries[0].tolist() == [array.ctypes.data, 4]
