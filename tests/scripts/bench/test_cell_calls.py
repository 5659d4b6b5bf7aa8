"""What a call of a cell takes to record."""

import numpy as np

import edbatch as eb
from scripts.bench.cell_calls import forms, main


def test_every_form_is_timed(tables_of):
    rows = tables_of(main, "--calls=5")["Recording a call of a cell"]
    assert len(rows) == 12
    assert {row["asked, ns"] for row in rows} == {250}


def test_every_form_records_one_node():
    with eb.Graph() as graph:
        calls = forms(eb.input(np.ones(8, np.float32)))
        for name, call in calls.items():
            n = graph.n
            call()
            assert graph.n - n == (name != "nothing"), name
