"""Directories: the same tables, in Python and in compiled code."""

from typing import NamedTuple

import numpy as np
import pytest

from edbatch.base.records import record_type
from edbatch.compiling.compiled import at_once, compiled
from edbatch.compiling.directory import BOOL, INT32, Directory, reader, table
from tests.fake_device import in_python

PAIR = record_type(("a", "b"), np.int32)


@compiled(small=True)
def summed(entries):
    pairs, numbers, flags = table(entries, 0, PAIR), table(entries, 1, INT32), table(entries, 2, BOOL)
    total = 0
    for at in range(len(pairs)):
        if flags[at]:
            total += pairs[at]["a"] * numbers[at]
        pairs[at]["b"] = total
    return total


class Tables(NamedTuple):
    pairs: np.ndarray
    numbers: np.ndarray
    flags: np.ndarray


read = reader(Tables, PAIR, INT32, BOOL)


@compiled(small=True)
def summed_of_all(entries):
    tables = read(entries)
    total = 0
    for at in range(len(tables.pairs)):
        if tables.flags[at]:
            total += tables.pairs[at]["a"] * tables.numbers[at]
        tables.pairs[at]["b"] = total
    return total


@compiled(small=True)
def emptied(entries):
    numbers = table(entries, 0, INT32)
    numbers[: len(numbers)] = numbers
    return len(numbers)


@pytest.fixture(params=[in_python, at_once])
def how(request):
    with request.param():
        yield


@pytest.mark.parametrize("summed", [summed, summed_of_all])
def test_tables_are_read_and_written(summed, how):
    pairs = np.array([(1, 0), (2, 0), (3, 0)], PAIR)
    made = Directory((pairs, np.array([10, 20, 30], np.int32), np.array([True, False, True])))
    assert summed(made.entries) == 100
    assert pairs["b"].tolist() == [10, 10, 100]
    assert made.tables[0] is pairs


def test_what_is_read_only_has_an_address_too():
    array = np.arange(4)
    array.flags.writeable = False
    assert Directory((array,)).entries[0].tolist() == [array.ctypes.data, 4]


def test_nothing_is_written_to_tables_without_entries(how):
    """As single operations on slices do; Python refused it where the table was of what is read only."""
    assert emptied(Directory((np.zeros(0, np.int32),)).entries) == 0
