"""Beam search over batching sequences, compiled."""

import numpy as np
from numba import njit

from edbatch.policy.bound_loops import remaining_depths
from edbatch.policy.frontier import Frontier, Graph, new_frontier, new_record, ready_types, run_batch


@njit(cache=True)
def advance(graph, frontier, record, depths, reach, kind):
    """Run a batch and keep reach[s, t] = the largest depths[v, t] over the ready nodes v of type s."""
    before = frontier.end.copy()
    run_batch(graph, frontier, record, kind)
    reach[kind] = 0
    for other in range(len(before)):
        for node in frontier.pool[before[other] : frontier.end[other]]:
            for kind_below in range(len(before)):
                reach[other, kind_below] = max(reach[other, kind_below], depths[node, kind_below])


@njit(cache=True)
def falls(reach, kinds, count, kind):
    """Whether a batch of `kind` brings the bound of the remaining graph down (by one, never more).

    It does when every path with the most nodes of the type starts with one of the batch.
    """
    for other in kinds[:count]:
        if other != kind and reach[other, kind] >= reach[kind, kind]:
            return False
    return True


@njit(cache=True)
def beam_search(types, indptr, user_indptr, users, order, type_count, width, mode=0):
    """int32[batches]: the best sequence of types found."""
    nodes = len(types)
    graph = Graph(types, user_indptr, users)
    depths = remaining_depths(types, user_indptr, users, order, type_count)
    np.random.seed(0)
    code = np.random.randint(0, 1 << 62, nodes)  # the executed set as a sum of random codes
    record = new_record(nodes)  # scratch: sequences are kept as parent pointers

    first = new_frontier(types, indptr, type_count)
    missing = np.empty((2, width, nodes), np.int32)
    pool = np.empty((2, width, nodes), np.int32)
    begin = np.empty((2, width, type_count), np.int32)
    end = np.empty((2, width, type_count), np.int32)
    reach = np.zeros((2, width, type_count, type_count), np.int32)
    executed = np.zeros((2, width), np.int64)
    signature = np.zeros((2, width), np.int64)
    wasted = np.zeros((2, width), np.int64)
    missing[0, 0], pool[0, 0], begin[0, 0], end[0, 0] = first
    for kind in range(type_count):
        for node in first.pool[first.begin[kind] : first.end[kind]]:
            for below in range(type_count):
                reach[0, 0, kind, below] = max(reach[0, 0, kind, below], depths[node, below])

    parents = np.empty((nodes, width), np.int32)
    actions = np.empty((nodes, width), np.int32)
    kinds = np.empty(type_count, np.int32)
    alive, step, now = 1, 0, 0
    while True:
        # every (beam, type) is a candidate, ranked by wasted batches, then by executed nodes
        candidates = alive * type_count
        score = np.full(candidates, np.inf)
        sums = np.zeros(candidates, np.int64)
        for beam in range(alive):
            frontier = Frontier(missing[now, beam], pool[now, beam], begin[now, beam], end[now, beam])
            count = ready_types(frontier, kinds)
            for kind in kinds[:count]:
                index = beam * type_count + kind
                batch = frontier.pool[frontier.begin[kind] : frontier.end[kind]]
                sums[index] = signature[now, beam]
                for node in batch:
                    sums[index] += code[node]
                waste = wasted[now, beam] + (not falls(reach[now, beam], kinds, count, kind))
                done = executed[now, beam] + len(batch)
                if mode == 0:
                    tie = 1.0 - done / (nodes + 1)
                elif mode == 1:
                    tie = done / (nodes + 1)
                else:
                    tie = len(batch) / (nodes + 1)
                score[index] = waste + tie
        survivors = 0
        for index in np.argsort(score, kind="mergesort"):
            if survivors == width or score[index] == np.inf:
                break
            beam, kind = index // type_count, index % type_count
            twin = False
            for other in range(survivors):
                twin |= signature[1 - now, other] == sums[index]
            if twin:
                continue
            there = 1 - now
            missing[there, survivors] = missing[now, beam]
            pool[there, survivors] = pool[now, beam]
            begin[there, survivors] = begin[now, beam]
            end[there, survivors] = end[now, beam]
            reach[there, survivors] = reach[now, beam]
            frontier = Frontier(
                missing[there, survivors], pool[there, survivors], begin[there, survivors], end[there, survivors]
            )
            batch_size = frontier.end[kind] - frontier.begin[kind]
            wasted[there, survivors] = np.int64(score[index])
            executed[there, survivors] = executed[now, beam] + batch_size
            signature[there, survivors] = sums[index]
            record.length[0] = 0
            advance(graph, frontier, record, depths, reach[there, survivors], kind)
            parents[step, survivors] = beam
            actions[step, survivors] = kind
            survivors += 1
        now, alive, step = 1 - now, survivors, step + 1
        for beam in range(alive):
            if executed[now, beam] == nodes:
                sequence = np.empty(step, np.int32)
                for back in range(step - 1, -1, -1):
                    sequence[back] = actions[back, beam]
                    beam = parents[back, beam]
                return sequence


@njit(cache=True)
def replay(types, indptr, user_indptr, users, type_count, sequence):
    """The schedule that runs the given types in turn."""
    graph = Graph(types, user_indptr, users)
    frontier, record = new_frontier(types, indptr, type_count), new_record(len(types))
    for kind in sequence:
        run_batch(graph, frontier, record, kind)
    return record
