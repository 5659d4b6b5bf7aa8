"""The columns of a type table: those of all types, also after an interrupt."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.runtime import type_table
from edbatch.runtime.type_columns import ColumnsOfTypes


def run(size):
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input(np.ones(size))
        assert eb.tanh(x * 2).value().shape == (size,)
    return graph._evaluation.table


@pytest.fixture
def table(monkeypatch):
    """A table of this test's own."""
    monkeypatch.setattr(type_table, "_shared", {})
    return run(2)


def check(table):
    columns = [table.n_args, table.payloads, table.window, table.arenas, table.is_source, table.may_split, table.kept]
    assert {len(column) for column in columns} == {len(table.bound)}
    for number, bound in enumerate(table.bound):
        assert table.n_args[number] == bound.type.n_args
        assert table.window[number] == bound.window
        assert table.arenas[number] == table.windows.windows[bound.window].arena


def test_types_are_appended(table):
    check(table)
    for size in range(3, 40):
        assert run(size) is table
    check(table)
    assert len(table.bound) > 100


def test_an_interrupt_before_columns_are_longer(table, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ColumnsOfTypes, "extend", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(50)
    assert len(table.bound) > len(table.n_args)
    for size in (51, 50, 2):
        run(size)
    check(table)
