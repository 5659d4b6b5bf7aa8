"""Tables that grow: what is in them stays, and room that was there is used again."""

import numpy as np

from edbatch.memory.plan.growing import LISTS, USED, GrowingPlan


def use(plan, nodes, args):
    """Use the most that so many nodes may need; every entry says which use it was of."""
    before = plan.used
    plan.reserve(nodes, args)
    more = (nodes, args + LISTS * nodes, args, 2 * (nodes + args) + 1, nodes)
    plan._counts[:] = [used + some for used, some in zip(before, more, strict=True)]
    for table, first, end in zip((*plan.tables, plan.nodes), before, plan.used, strict=True):
        assert len(table) == end
        table.view(np.int32).reshape(-1, table.itemsize // 4)[first:] = before.nodes


def test_what_is_in_use_stays():
    plan, wants = GrowingPlan(), [[] for _ in range(5)]
    for nodes, args in ((1, 0), (3, 7), (1, 100), (50, 2), (1, 1), (400, 1000)):
        before = plan.used
        use(plan, nodes, args)
        for want, first, end in zip(wants, before, plan.used, strict=True):
            want += [before.nodes] * (end - first)
    for want, table in zip(wants, (*plan.tables, plan.nodes), strict=True):
        assert table.view(np.int32).reshape(-1, table.itemsize // 4)[:, 0].tolist() == want
    assert len(plan.batches) >= plan.used.batches == 456


def test_entries_are_those_of_the_tables():
    plan = GrowingPlan()
    plan.reserve(4, 9)
    addresses = plan.entries["address"].tolist()
    plan._counts[:] = 1
    assert addresses[:4] == [table.ctypes.data for table in plan.tables]
    assert plan.entries["length"][5] == 1
    assert plan._used.dtype == USED


def test_room_is_used_again():
    plan = GrowingPlan()
    plan.reserve(100, 300)
    entries, room = plan.entries, plan.bytes
    plan.clear()
    assert plan.used == (0, 0, 0, 0, 0)
    for nodes, args in ((60, 100), (40, 200)):
        plan.reserve(nodes, args)
    assert plan.entries is entries
    plan.clear()
    plan.reserve(10, 400)  # more of one, and not less of the other
    assert plan.bytes > room
    plan.clear()
    entries = plan.entries
    plan.reserve(100, 400)
    assert plan.entries is entries


def test_many_small_uses_copy_little():
    """Of whichever tables they use: what is read in place needs no indices, what has no operands nothing else."""
    for more in ((1, 2, 2, 0, 1), (1, 0, 0, 0, 1), (1, 1, 0, 4, 1), (1, 2, 2, 4, 1)):
        plan, sizes = GrowingPlan(), set()
        for _ in range(5000):
            plan.reserve(1, 2)
            plan._counts[:] += more
            sizes.add(tuple(map(len, plan._tables)))
        assert len(sizes) < 40, more
