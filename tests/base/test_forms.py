"""Values taken apart and put together again."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from edbatch.base.forms import form_of, made_of, with_known
from edbatch.base.records import record_type


class Pair(NamedTuple):
    first: int
    second: object


@dataclass(frozen=True)
class Part:
    name: str
    sizes: tuple[int, ...]


VALUES = [
    3,
    (),
    (1, (2, "x"), None, True, 2.5),
    Pair(4, Part("a", (5, 6))),
    {"a": 1, 2: (3, 4)},
    [(1, 2), (3, 4)],
    Part("b", ()),
]


@pytest.mark.parametrize("value", VALUES)
def test_there_and_back(value):
    integers = []
    form = form_of(value, integers)
    back = made_of(form, np.array(integers, np.int64))
    assert back == value
    assert type(back) is type(value)
    assert form == form_of(value, [])
    assert hash(form) == hash(form_of(value, []))


def test_tables_without_entries():
    kind = record_type(("a", "b"))
    tables = np.zeros(0, kind), np.zeros(2, kind), np.zeros(0, np.int64)
    integers = []
    form = form_of((tables, 1), integers)
    first, then = made_of(form, np.array(integers)), made_of(form, np.array(integers))
    for found in (first[0], then[0]):
        assert [(len(table), table.dtype) for table in found] == [(len(table), table.dtype) for table in tables]
    first[0][1]["b"] = 5
    assert not then[0][1]["b"].any()  # each has memory of its own


@pytest.mark.parametrize(("a", "b"), [((1,), (1.0,)), ((True,), (1,)), ((0.0,), (-0.0,)), ([1], (1,)), ("1", b"1")])
def test_forms_tell_apart(a, b):
    assert form_of(a, []) != form_of(b, [])


def test_what_does_not_vary_is_filled_in():
    integers = []
    form = form_of(Pair(4, Part("a", (5, 6))), integers)
    form, left = with_known(form, np.array(integers), np.array([False, False, True]))
    assert left.tolist() == [False, False, True]
    assert made_of(form, np.array([9])) == Pair(4, Part("a", (5, 9)))
