"""Plans of random graphs, checked operand by operand against the rows and windows they stand for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.compiling.array_table import ArrayTable
from edbatch.memory.plan.addresses import ROWS
from edbatch.memory.plan.columns import TypeColumns
from edbatch.memory.plan.format import GATHER, SHARED, SLICE, STRIDED
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.memory.plan.planner import extend_plan


def random_case(seed):
    """Columns of a random graph with views and variadic nodes, and batches that respect its order."""
    random = np.random.default_rng(seed)
    n_types = 5
    singles, lists = np.array([0, 0, 0, 0, 1], np.int32), np.array([0, 0, 1, 0, 2], np.int32)
    arity = np.array([0, 2, 0, 1, 0])
    payloads = np.array([1, 0, 0, 2, 0], np.int32)
    n = int(random.integers(1, 60))
    types, starts, counts, args = [], [], [], []
    for node in range(n):
        kind = int(random.integers(n_types)) if node else 0
        kind = kind if node or arity[kind] == 0 else 0
        count = int(arity[kind])
        if lists[kind]:
            count = int(singles[kind] + lists[kind] * random.integers(1, 5))
            args.append(count)
        types.append(kind)
        starts.append(len(args))
        counts.append(count)
        operands = random.integers(0, node, count).tolist() if count else []
        if kind == 1 and seed % 2:  # two views of one node, in whole batches
            operands[1] = operands[0]
        if kind == 4 and seed % 3:  # two lists of the same nodes
            operands[1 + (count - 1) // 2 :] = operands[1 : 1 + (count - 1) // 2]
        # Types alternate between two arenas; views 1 and 2 show the first, view 3 the second.
        views = [int(random.choice([0, 1, 2] if types[x] % 2 == 0 else [0, 3])) for x in operands]
        args += [x + (view << 32) for x, view in zip(operands, views, strict=True)]
        args += random.integers(0, 1000, payloads[kind]).tolist()
    level = [0] * n
    for node in range(n):
        below = [level[args[starts[node] + j] & 0xFFFFFFFF] for j in range(counts[node])]
        level[node] = 1 + max(below, default=-1)
    keys = sorted(set(zip(level, types, strict=True)))
    batches = [[node for node in range(n) if (level[node], types[node]) == key] for key in keys]
    for batch in batches:
        random.shuffle(batch)
    as_int = lambda values: np.array(values, np.int32)  # noqa: E731
    return {
        "order": as_int([node for batch in batches for node in batch]),
        "offsets": np.cumsum([0] + [len(batch) for batch in batches]),
        "types": as_int(types),
        "starts": as_int(starts),
        "counts": as_int(counts),
        "n_integers": payloads,
        "singles": singles,
        "lists": lists,
        "args": np.array(args, np.int64),
        "windows": as_int([0, 1, 0, 1, 0]),
        "view_windows": as_int([0, 2, 3, 4]),
        "arenas": as_int([0, 1, 0, 1, 0]),
        "row": np.full(n, -1, np.int32),
        "rows": [7, 100],  # of an earlier plan
    }


def planned(case, before=()):
    """The plan of columns that have the names of their records' fields, and how many rows its arenas have.

    Args:
        before: batches that the plan has already.
    """
    n_types, plan = len(case["n_integers"]), GrowingPlan()
    unread = {"numbers": np.int32, "n_operands": np.int32, "is_source": np.bool_, "may_split": np.bool_}
    columns = case | {name: np.zeros(n_types, dtype) for name, dtype in unread.items()}
    nodes = ArrayTable([case[name] for name in ("types", "starts", "counts", "args", "row")])
    types = ArrayTable(TypeColumns(*(columns[name] for name in TypeColumns._fields)))
    arenas = np.zeros(len(case["rows"]), ROWS)
    arenas["used"], arenas["room"] = case["rows"], 120
    runs = (*before, (case["order"], case["offsets"]))
    for number, (order, offsets) in enumerate(runs, 1):
        plan.reserve(sum(len(run[0]) for run in runs[:number]), number * len(case["args"]))
        has_room = extend_plan(
            order, offsets, 0, 1 + int(case["view_windows"].max()), nodes.entries, types.entries, plan.entries, arenas
        )
        assert has_room == bool((arenas["used"] <= 120).all())
    return plan, arenas["used"].tolist()


def fetched(plan, operand):
    """(window, row) of every entry of an operand, by its way of access."""
    access, window, start, distance, segments, count = operand
    if access == SLICE:
        return [(window, start + i) for i in range(count)]
    if access == SHARED:
        return [(window, start)] * count
    if access == STRIDED:
        return [(window, start + i * distance) for i in range(count)]
    if access == GATHER:
        return [(window, row) for row in plan.indices[start : start + count].tolist()]
    found = [None] * count
    for window, rows, positions, n in plan.segments[start : start + segments].tolist():
        for i in range(n):
            found[plan.indices[positions + i]] = (window, int(plan.indices[rows + i]))
    return found


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_every_operand_is_reached(seed):
    case = random_case(seed)
    batches = [set(batch.tolist()) for batch in np.split(case["order"], case["offsets"][1:-1])]
    made, used = planned(case)
    plan = made.tables
    assert made.nodes.tolist() == case["order"].tolist()
    row, args, types = case["row"], case["args"], case["types"]

    def where(operand_id):
        node, view = operand_id & 0xFFFFFFFF, operand_id >> 32
        return (case["view_windows"][view] if view else types[node] % 2), row[node]

    found = np.split(case["order"], case["offsets"][1:-1])
    assert [set(batch.tolist()) for batch in found] == batches
    # Rows: every arena is filled without gaps or overlap, after what was there.
    for arena, before in enumerate([7, 100]):
        rows = sorted(int(row[v]) for v in range(len(row)) if types[v] % 2 == arena)
        assert rows == list(range(before, used[arena]))
    for batch, (kind, first_row, n, at, payload, offsets) in zip(found, plan.batches.tolist(), strict=True):
        assert n == len(batch)
        assert row[batch].tolist() == list(range(first_row, first_row + n))
        starts, counts = case["starts"][batch], case["counts"][batch]
        singles, lists = case["singles"][kind], case["lists"][kind]
        if lists:
            lengths = (counts - singles) // lists
            assert plan.indices[offsets : offsets + n + 1].tolist() == [0, *np.cumsum(lengths).tolist()]
            slots = [[args[s + j] for s in starts] for j in range(singles)]
            for which in range(lists):
                of_nodes = [(s + singles + which * c, c) for s, c in zip(starts, lengths, strict=True)]
                slots.append([args[s + j] for s, c in of_nodes for j in range(c)])
        else:
            slots = [[args[s + j] for s in starts] for j in range(counts[0])]
        for slot, wanted in enumerate(slots):
            got = fetched(plan, *plan.operands_of(at + slot, 1))
            assert got == [where(operand_id) for operand_id in wanted]
        for j in range(case["n_integers"][kind]):
            got = plan.integers[payload + j * n : payload + (j + 1) * n]
            assert got.tolist() == [args[s + c + j] for s, c in zip(starts, counts, strict=True)]
