import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.memory.layout import BatchedOp, Reach, Variable, plan_layout
from edbatch.memory.layout.layout import NAMED
from tests.memory.layout.cells import CELLS, Cell, least_moved, moved_by, names, paper_figure_3, random_case


def check(variables, ops, layout):
    """What a layout says is so: read in a memory in which every entry knows its variable."""
    assert sorted(layout.order) == list(range(len(variables)))
    memory = {space: np.full(10_000_000 // 100, -1) for space in {variable.space for variable in variables}}
    for index, (variable, offset) in enumerate(zip(variables, layout.offsets, strict=True)):
        home = memory[variable.space][offset : offset + variable.size]
        assert (home == -1).all()
        home[:] = index
    verdicts = iter(layout.verdicts)
    for number, (op, order) in enumerate(zip(ops, layout.batch_orders, strict=True)):
        assert sorted(order) == list(range(len(op.result)))
        for slot, indices in op.slots():
            verdict = next(verdicts)
            assert (verdict.op, verdict.slot) == (number, slot)
            wanted = np.concatenate([np.full(variables[indices[i]].size, indices[i]) for i in order])
            if verdict.reach is Reach.GATHER:
                assert verdict.moved == len(wanted)
                continue
            assert verdict.moved == 0
            if verdict.reach is Reach.BROADCAST:
                assert len(set(indices)) == 1
                wanted = wanted[: variables[indices[0]].size]
            found = memory[variables[indices[0]].space][layout.offsets[indices[order[0]]] :][: len(wanted)]
            np.testing.assert_array_equal(found, wanted)
    assert next(verdicts, None) is None


def test_the_papers_example_gets_the_papers_layout():
    variables, ops = paper_figure_3()
    layout = plan_layout(variables, ops)
    assert [variables[index].name for index in layout.order] == ["x2", "x1", "x3", "x4", "x5", "x8", "x6", "x7"]
    assert {verdict.reach for verdict in layout.verdicts} == {Reach.VIEW}
    check(variables, ops, layout)


@pytest.mark.parametrize("name", CELLS)
def test_cells_copy_nothing(name):
    cell = CELLS[name]()
    layout = plan_layout(cell.variables, cell.ops)
    assert (layout.moved, layout.cheapest) == (0, True)
    assert moved_by(cell.variables, cell.ops, layout.order) == 0
    check(cell.variables, cell.ops, layout)


@pytest.mark.parametrize("seed", range(60))
def test_small_cases_move_little_and_the_least_where_nothing_conflicts(seed):
    rng = random.Random(seed)
    variables, ops = random_case(rng, rng.randint(3, 6), rng.randint(1, 5), repeats=0.2)
    layout = plan_layout(variables, ops)
    check(variables, ops, layout)
    check_little(layout, least_moved(variables, ops))
    assert layout.moved == moved_by(variables, ops, layout.order)
    assert layout.cheapest != any("conflicts" in why for why in layout.stopped_by)


def check_little(layout, least):
    assert least <= layout.moved <= (least if layout.cheapest else 2 * least)


def ordered_case(seed, n_variables=6):
    """Random operations, some of which run in the order they are given."""
    rng = random.Random(seed)
    variables, ops = random_case(rng, rng.randint(3, n_variables), rng.randint(1, 4))
    return variables, [replace(op, ordered=rng.random() < 0.5) for op in ops]


@pytest.mark.parametrize("seed", range(80))
def test_ordered_operations_run_in_their_order_and_move_little(seed):
    variables, ops = ordered_case(seed)
    layout = plan_layout(variables, ops)
    check(variables, ops, layout)
    for op, order in zip(ops, layout.batch_orders, strict=True):
        assert not op.ordered or order == tuple(range(len(order)))
    check_little(layout, least_moved(variables, ops))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 20), st.integers(1, 10))
def test_no_layout_claims_what_is_not_so(seed, n, n_ops):
    variables, ops = random_case(random.Random(seed), n, n_ops, widest=6, repeats=0.2)
    variables = [
        Variable(variable.name, variable.size, "ab"[seed >> index & 1]) for index, variable in enumerate(variables)
    ]
    layout = plan_layout(variables, ops)
    check(variables, ops, layout)
    for verdict, why in zip(layout.verdicts, layout.stopped_by, strict=True):
        assert bool(verdict.moved) == (verdict.reach is Reach.GATHER) == bool(why)


def hidden_case(seed, n=40, n_ops=15):
    """Operations that all fit one hidden order."""
    rng = random.Random(seed)
    hidden = rng.sample(range(n), n)
    ops = []
    for number in range(n_ops):
        k = rng.randint(2, 6)
        run = rng.sample(range(k), k)
        slots = [hidden[start : start + k] for start in (rng.randint(0, n - k) for _ in range(3))]
        result, *operands = [tuple(slot[i] for i in run) for slot in slots]
        ops.append(BatchedOp(f"op{number}", result, tuple(operands)))
    return [Variable(f"v{i}", 1) for i in range(n)], ops


@pytest.mark.parametrize("seed", range(40))
def test_what_fits_one_order_is_found_whole(seed):
    variables, ops = hidden_case(seed)
    layout = plan_layout(variables, ops)
    assert layout.moved == 0
    check(variables, ops, layout)


def test_of_conflicting_operands_the_one_that_moves_the_least_yields():
    variables = [Variable(name, size) for name, size in [("a", 10), ("b", 1), ("c", 10), ("d", 1)]]
    star = [BatchedOp("f", (0, 1), ()), BatchedOp("g", (0, 2), ()), BatchedOp("h", (0, 3), ())]
    layout = plan_layout(variables, star)  # a has two neighbours
    assert [verdict.reach.value for verdict in layout.verdicts].count("gather") == 1
    assert layout.moved == 11
    cycle = [
        BatchedOp("f", (0, 1), ()),
        BatchedOp("g", (1, 2), ()),
        BatchedOp("h", (2, 3), ()),
        BatchedOp("i", (3, 0), ()),
    ]
    assert plan_layout(variables, cycle).moved == 11


def test_an_operand_that_repeats_some_variables_is_a_gather_and_stops_nothing():
    cell = Cell()
    gates = "i o f u"
    cell.op(
        "matmul",
        f"{names('x', gates)} {names('h', gates)}",
        f"{names('W_', gates)} {names('U_', gates)}",
        "x x x x h h h h",
    )
    cell.op("add", names("s", gates), names("x", gates), names("h", gates))
    layout = plan_layout(cell.variables, cell.ops)
    verdicts = zip(layout.verdicts, layout.stopped_by, strict=True)
    gathers = [(one.slot, one.moved, why) for one, why in verdicts if one.reach is Reach.GATHER]
    assert gathers == [(1, 8 * 64, "repeats x, h")]
    check(cell.variables, cell.ops, layout)


def test_spaces_are_apart():
    variables = [Variable("a", 1), Variable("w", 1, "parameters"), Variable("b", 1), Variable("v", 1, "parameters")]
    layout = plan_layout(variables, [BatchedOp("f", (0, 2), ((3, 1), (0, 1)))])
    assert sorted(layout.offsets) == [0, 0, 1, 1]
    assert [verdict.reach.value for verdict in layout.verdicts] == ["view", "view", "gather"]
    assert layout.stopped_by == ("", "", "lies in several spaces: parameters, row")


def test_what_is_not_met_says_what_stands_against_it():
    variables = [Variable(name, 1) for name in "abcde"]
    ops = [BatchedOp("f", (0, 1, 2), ()), BatchedOp("g", (2, 3, 4), ()), BatchedOp("h", (1, 3), ())]
    assert plan_layout(variables, ops).stopped_by == ("", "", "conflicts with f (op 0) result, g (op 1) result")
    pairs = [BatchedOp(f"f{i}{j}", (i, j), ()) for i, j in combinations(range(8), 2)]
    found = plan_layout([Variable(f"v{at}", 1) for at in range(8)], pairs)
    assert found.moved == 2 * (len(pairs) - 7)  # seven pairs are neighbours
    assert found.stopped_by.count("conflicts with what moves more") == len(pairs) - 7 - NAMED
