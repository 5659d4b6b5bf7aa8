"""The faults that `python -m tests.mutants` plants, each with a test that catches it.

Code that is rewritten takes its fault along: what is replaced is text of today's modules, and a test says when it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One fault.

    Args:
        name: of the mutant.
        kind: the class of faults that it stands for.
        says: what is wrong then.
        path: of the module in `edbatch`.
        old, new: the text that is replaced, which occurs there once, and what stands there instead.
        test: catches it.
    """

    name: str
    kind: str
    says: str
    path: str
    old: str
    new: str
    test: str

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return "edbatch." + self.path.removesuffix(".py").replace("/", ".")


FUZZ = "tests/fuzz/test_fuzz.py::test_random_programs"

FAULTS = (
    # Gradients of single ops and of bodies.
    Fault(
        "transposed-back", "wrong transposition",
        "the gradient of a transposition is transposed by its axes instead of their inverse",
        "graph/ops/shape.py",
        "transpose(g, [axes.index(axis) for axis in range(len(axes))])",
        "transpose(g, list(axes))",
        "tests/graph/test_gradients.py",
    ),
    Fault(
        "broadcast-axis", "broadcast over the wrong axis",
        "the gradient of a broadcast operand is summed over its own last axes",
        "graph/cell/gradient_sum.py",
        "gradient = sum(gradient, tuple(range(ahead)))",
        "gradient = sum(gradient, tuple(range(gradient.ndim - ahead, gradient.ndim)))",
        "tests/graph/test_gradients.py",
    ),
    Fault(
        "gradient-lost", "lost gradients",
        "of a value that is read several times in a cell only the last reader's gradient is kept",
        "graph/cell/gradient_sum.py",
        "return sum_of(found) if found else None",
        "return found[-1] if found else None",
        FUZZ + "[50]",
    ),
    Fault(
        "stop-in-cells", "gradients leak through stopped edges",
        "stop_gradient inside a cell stops nothing",
        "graph/cell/gradient_sum.py",
        "return view is not None and any(op is STOP_GRADIENT for op, _ in view.steps)",
        "return False",
        FUZZ + "[50]",
    ),
    Fault(
        "unread-output", "gradients of what is not read",
        "an operand gets a gradient of zero times an infinite derivative from what nobody reads",
        "graph/cell/derivative.py",
        "flows = [self._of_reached(number, flow) for flow in flows]",
        "pass",
        "tests/runtime/backward/test_output_sets.py::test_what_was_merged_into_one_op",
    ),
    Fault(
        "compared-with-recomputed", "lost gradients",
        "what is compared in a derivative is partly given and partly computed again, with other last bits",
        "graph/cell/derivative.py",
        "if len(read - self.exact) < 2 or read <= self.told:",
        "if True:",
        "tests/runtime/backward/test_recomputed.py",
    ),
    Fault(
        "large-scores", "loss of digits and overflow",
        "cross_entropy takes its logarithm of exponentials without taking off the largest score",
        "graph/ops/loss.py",
        "top = stop_gradient(max(x, keepdims=True))",
        "top = stop_gradient(max(x * 0, keepdims=True))",
        "tests/graph/ops/test_loss.py::test_large_scores_lose_nothing",
    ),
    Fault(
        "padding-read", "padding read as data",
        "max pooling pads with zeros, which are larger than negative entries",
        "graph/ops/pool.py",
        "padded(x, padding, -math.inf)",
        "padded(x, padding, 0.0)",
        "tests/graph/ops/test_windows.py",
    ),
    # The backward pass through a graph.
    Fault(
        "stop-in-batches", "gradients leak through stopped edges",
        "an operand that some nodes of a batch read stopped gets gradients from all",
        "runtime/backward/out.py",
        "if access != GATHER_MANY and targets.stopped[window]:",
        "if False:",
        "tests/runtime/backward/test_backward.py::test_stopped_and_scaled",
    ),
    Fault(
        "constants-shared", "gradients leak to constants",
        "the zeros that ops compute with are those that users hold",
        "graph/record.py",
        "key = (op, shape, True) if inner else (op, shape)",
        "key = (op, shape)",
        "tests/graph/test_inner_constants.py",
    ),
    Fault(
        "scatter-overwrites", "a scatter overwrites instead of adding",
        "gradients that are added to rows one after the other replace what is there",
        "kernels/row_kernels.py",
        "(Store(0, 1, there, add=True),)",
        "(Store(0, 1, there),)",
        "tests/runtime/backward/test_tables.py::test_rows_that_a_batch_reads_several_times",
    ),
    Fault(
        "gradient-twice", "gradients added twice",
        "rows of a table whose gradient is made dense stay in the list, and are added again",
        "graph/model/parameters.py",
        "+= rows[1]\n                self._came.clear()",
        "+= rows[1]",
        "tests/runtime/test_tied.py",
    ),
    Fault(
        "duplicate-rows", "look-up rows of duplicates lost",
        "of rows that were looked up several times one gradient is kept",
        "kernels/cpu/backend.py",
        "if (indices[1:] > indices[:-1]).all():\n            return np.array(indices, np.int64), rows.copy()",
        "if True:\n            found, first = np.unique(indices, return_index=True)\n"
        "            return found.astype(np.int64), rows[first].copy()",
        "tests/runtime/backward/test_backward.py::test_table_gradients_are_sparse",
    ),
    Fault(
        "second-root", "backward from a second root",
        "the way back that is remembered is taken whatever expression it begins from",
        "runtime/backward/backward.py",
        "key = self._root, self.has_sources,",
        "key = 0, self.has_sources,",
        "tests/runtime/test_remembered_graphs.py",
    ),
    Fault(
        "saved-rows", "wrong rows gathered",
        "what the forward run has saved is read from the first row on, whichever batch it is of",
        "runtime/backward/loops.py",
        "chosen = Chosen(batch, which, m, saved[batch[\"type\"]], left[number])",
        "chosen = Chosen(batch, which, m, 0, left[number])",
        "tests/runtime/backward/test_backward.py::test_what_is_saved",
    ),
    Fault(
        "list-members", "off-by-one segments",
        "of lists of which only some have a gradient, members are counted from the first list on",
        "runtime/backward/loops.py",
        "owners[at], members[at] = i, offsets[chosen[i]] + at - begins[i]",
        "owners[at], members[at] = i, at",
        "tests/runtime/backward/test_tables.py::test_some_lists_of_a_batch",
    ),
    Fault(
        "frozen-moves", "frozen parameters move",
        "a frozen part of a stack counts as having a gradient, and is updated with the others",
        "graph/model/parameters.py",
        "member._has_grad = not member._frozen",
        "member._has_grad = True",
        "tests/graph/model/test_parameters.py",
    ),
    Fault(
        "written-since", "gradients at values that have changed",
        "backward does not notice that parameters have been written to since the graph ran",
        "graph/model/writes.py",
        "changed = dict.fromkeys(member.name for member in members if member.written > since)",
        "changed = None",
        "tests/graph/model/test_writes.py",
    ),
    # Plans and memory.
    Fault(
        "uneven-rows", "wrong rows gathered",
        "rows are taken to be evenly spaced when the first two and all from the third on are",
        "memory/plan/planner.py",
        "for at in range(begin + 2, used):",
        "for at in range(begin + 3, used):",
        FUZZ + "[50]",
    ),
    Fault(
        "views-confused", "wrong rows gathered",
        "operands of one type that are seen through several views are all read through the first one",
        "memory/plan/planner.py",
        "alike &= (args[j] >> 32 == view) & (kinds[source] == kind)",
        "alike &= kinds[source] == kind",
        FUZZ + "[50]",
    ),
    Fault(
        "lists-with-singles", "off-by-one segments",
        "a list's length counts the operands that come before it",
        "memory/plan/planner.py",
        "total += (nodes.counts[order[i]] - types.singles[kind]) // types.lists[kind]",
        "total += nodes.counts[order[i]] // types.lists[kind]",
        "tests/runtime/test_attention.py",
    ),
    Fault(
        "block-rows", "memory layout off by some rows",
        "the second block of a large batch writes its results over those of the first",
        "kernels/interpreter.py",
        "here = Rows(result.address + begin * result.stride, result.stride, result.width)",
        "here = Rows(result.address, result.stride, result.width)",
        "tests/vertices/test_vertices.py::test_more_vertices_than_a_block_has",
    ),
    Fault(
        "arena-moved", "an address kept after memory has grown",
        "values are read where an arena lay before it grew",
        "memory/plan/arenas.py",
        "if windows[at].arena != arena}",
        "}",
        "tests/memory/plan/test_arenas.py::test_rows_survive_growth_and_windows_follow",
    ),
    Fault(
        "value-is-a-view", "views aliasing memory that is reused",
        "a value that was read is a view of an arena, which the next graph writes to",
        "runtime/evaluation.py",
        "return found.copy() if found.shape else found[()]",
        "return found if found.shape else found[()]",
        "tests/runtime/test_graph.py::test_buffers_are_reused_and_values_are_not_shared",
    ),
    Fault(
        "plan-without-words", "stale plans from the plan cache",
        "small graphs of equal types share a plan, whatever their integers and edges are",
        "runtime/remembered.py",
        "packing(\"q\", len(args)).pack(*args), known, *told",
        "len(args), known, *told",
        "tests/runtime/test_remembered_graphs.py::test_what_is_else_is_planned_anew",
    ),
    Fault(
        "old-integers", "replay with old integers",
        "the plan of a known structure keeps the tags in place of this graph's integers",
        "runtime/evaluation.py",
        "        known.integers.in_plan.put(self.plan.indices, integers)\n",
        "        known.integers.in_plan.put(self.plan.indices, np.zeros_like(integers))\n",
        "tests/runtime/test_structures.py::test_other_words",
    ),
    Fault(
        "old-inputs", "replay with old integers",
        "what is replayed reads the first inputs of the graph",
        "graph/replay/recording.py",
        "bases = [len(graph.inputs), graph",
        "bases = [0, graph",
        "tests/graph/replay/test_replay.py::test_it_is_as_without_the_decorator",
    ),
    Fault(
        "layout-verified-wrong", "memory layout off by one row",
        "variables of a cell overlap by one entry",
        "memory/layout/layout.py",
        "ends[space] = offsets[index] + variables[index].size",
        "ends[space] = offsets[index] + max(1, variables[index].size - 1)",
        "tests/memory/layout/test_layout.py",
    ),
    # Types, traces and guards.
    Fault(
        "zeros-alike", "a batch mixes types",
        "attributes 0.0 and -0.0 are one type",
        "base/exact.py",
        "return kind, struct.pack(\"<d\", value)",
        "return kind, value",
        "tests/base",
    ),
    Fault(
        "classes-alike", "a batch mixes types",
        "attributes that are equal numbers of other classes (1, True) are one type",
        "base/exact.py",
        "if kind in _EQUAL_IF_SAME:\n        return kind, value\n    if kind is float:\n        return kind, struct",
        "if kind in _EQUAL_IF_SAME:\n        return value\n    if kind is float:\n        return kind, struct",
        "tests/base",
    ),
    Fault(
        "guard-not-compared", "stale traces",
        "lists and arrays that a cell has read may change without a new trace",
        "graph/watch/guard.py",
        "return not self._deep or all(",
        "return True or all(",
        "tests/graph/watch/test_watch.py::test_what_changes_is_seen_and_what_comes_back_is_found",
    ),
    Fault(
        "changed-in-a-graph", "a guard not compared",
        "what a cell reads may change between two calls in one graph",
        "graph/watch/noted.py",
        "if guard.holds(own, besides):",
        "if True:",
        "tests/graph/watch/test_inside_one_graph.py::test_a_change_between_two_calls",
    ),
    Fault(
        "sample-changed", "stale recordings",
        "a sample that was changed in place is replayed as it was",
        "graph/replay/replay.py",
        "if entry.parts and not unchanged(entry.parts):",
        "if False:",
        "tests/graph/replay/test_replay.py::test_a_sample_that_is_changed_in_place_is_recorded_again",
    ),
    Fault(
        "masks-kept", "kept dropout masks",
        "all masks of a graph are drawn by one number",
        "graph/columns.py",
        "self.next_draw = first + count",
        "self.next_draw = first",
        "tests/graph/test_draws.py",
    ),
    Fault(
        "shared-integers", "kernels and nodes confused with each other",
        "equal subgraphs are computed once even where their integers differ",
        "runtime/sharing_loops.py",
        "if nodes.args[_at(begin + k)] != recorded.args[_at(at + k)]:\n            return False\n    return True",
        "if False:\n            return False\n    return True",
        "tests/runtime/test_sharing.py::test_integers_types_and_inputs_tell_nodes_apart",
    ),
    Fault(
        "label-negative", "wrong label index",
        "a negative label counts from the end",
        "graph/record.py",
        "if as_integer(label) < 0:",
        "if False:",
        "tests/graph/ops/test_loss.py::test_a_label_is_never_negative",
    ),
    Fault(
        "distribution-as-labels", "cross-entropy of a distribution read as labels",
        "whole floats are taken for labels of an array of expressions",
        "graph/ops/loss.py",
        "if found is None or is_integers(found) or not found.ndim or found.dtype.kind not in \"fiub\":",
        "if found is not None and found.dtype.kind == \"f\" and found.ndim == 1:\n        return found.astype(int)\n"
        "    if found is None or is_integers(found) or not found.ndim or found.dtype.kind not in \"fiub\":",
        "tests/graph/test_rows_for_entries.py",
    ),
    Fault(
        "nan-unchecked", "NaN check switched off",
        "check_nan does not look at results",
        "runtime/execute.py",
        "if found.any():",
        "if False:",
        "tests/runtime/test_remembered_graphs.py::test_nan_is_found_again",
    ),
    # Scheduling.
    Fault(
        "states-confused", "policy states confused",
        "states of a machine that differ in their mark alone are one",
        "policy/state_table.py",
        "if table.mark[state] == mark and table.start",
        "if table.start",
        "tests/policy/test_state_table.py::test_it_behaves_like_a_dictionary",
    ),
    Fault(
        "fallbacks-miscounted", "FSM fallback miscounted",
        "decisions in states that training has not met are not counted where all types are known",
        "policy/fsm_loop.py",
        "            unseen += 1\n            for other in kinds[:count]:\n                unknown |= to_policy[other] < 0\n",
        "            for other in kinds[:count]:\n                unknown |= to_policy[other] < 0\n            unseen += int(unknown)\n",
        "tests/policy/test_fsm.py::test_an_unseen_state_falls_back_to_the_rule_and_is_counted",
    ),
    Fault(
        "order-broken", "a schedule breaks an order",
        "a node whose operand is a part that comes after it is scheduled before that",
        "runtime/lower.py",
        "elif not is_source[types[operand]]:",
        "elif not is_source[types[operand]] and operand < i:",
        "tests/runtime/test_split.py",
    ),
    Fault(
        "sums-by-type-number", "order of a sum",
        "batches of types are in the order of their numbers, which follow from what the process ran before",
        "runtime/backward/route.py",
        "self.terms = [number for number, how in self.hows.items() if how.flows.terms]",
        "self.terms = sorted(number for number, how in self.hows.items() if how.flows.terms)",
        "tests/runtime/test_same_numbers.py::test_mini_batches_in_another_order",
    ),
    # Training.
    Fault(
        "state-of-another", "optimizer state of the wrong parameter",
        "parameters that become a stack hand over what is remembered of them to its first rows",
        "training/storage.py",
        "self.slot(number, other.owner)[...] = slot",
        "self.slots[number][: len(slot)] = slot",
        "tests/training/test_trainer.py::test_parameters_may_be_stacked_between_updates",
    ),
    Fault(
        "updates-of-another", "optimizer state of the wrong parameter",
        "bias corrections of Adam are those of another parameter, which was updated more often",
        "training/due.py",
        "ways = {x: (group_of[x], updates.get(x, 0), x.dtype) for x in parameters}",
        "ways = {x: (group_of[x], 0, x.dtype) for x in parameters}",
        "tests/training/test_members_without_gradients.py",
    ),
    Fault(
        "untouched-rows", "sparse update of untouched rows",
        "all rows of a table are updated, also those without a gradient",
        "training/storage.py",
        "found = self.table.gradient_rows()",
        "import numpy as np\n        found = np.arange(self.table.shape[0]), self.table.gradient_array()",
        "tests/training/test_trainer.py::test_other_rows_of_a_table_are_left_alone",
    ),
    Fault(
        "half-an-update", "an interrupt leaves half an update",
        "an interrupt during an update is heard of before all is counted",
        "training/trainer.py",
        "with Whole():  # a second call",
        "if True:  # a second call",
        "tests/runtime/test_interrupts.py::test_an_update_that_goes_on_after_an_interrupt_at_any_line",
    ),
    Fault(
        "dtype-lost", "a checkpoint loses a dtype",
        "float64 is written to checkpoints as float32",
        "graph/model/checkpoint.py",
        "tensors = {name: parameter.value() for name, parameter in model.items()}",
        "tensors = {name: parameter.value().astype(np.float32) for name, parameter in model.items()}",
        "tests/graph/model/test_checkpoint.py::test_models_come_back",
    ),
    Fault(
        "dtype-path", "wrong dtype path",
        "numbers of float64 graphs are rounded to float32",
        "graph/record.py",
        "made = array_input(graph, np.asarray(float(value)))",
        "made = array_input(graph, np.asarray(np.float32(value)))",
        "tests/runtime/test_dtypes.py",
    ),
    # Several things at once.
    Fault(
        "answers-swapped", "coroutine answers swapped",
        "programs that wait get one another's values",
        "runtime/programs/rounds.py",
        "        for task in waiting:\n            asked = task.asked\n            task.answer",
        "        for task in reversed(waiting):\n            asked = task.asked\n            task.answer",
        "tests/runtime/programs/test_run.py::test_words_are_those_of_one_by_one",
    ),
    Fault(
        "requests-swapped", "serving answers swapped between requests",
        "an answer goes to the request that has waited longest",
        "serving/worker.py",
        "            request = self._flying.pop(number, None)\n            if request is not None and not request.alone",
        "            request = self._flying.pop(min(self._flying, default=number), None)\n"
        "            if request is not None and not request.alone",
        "tests/serving/test_batcher.py::test_answers_are_those_of_each_request_alone",
    ),
    Fault(
        "vertex-levels", "vertex function levels off",
        "a child whose number is one higher than its parent's is taken to come before it",
        "vertices/loops.py",
        "if child >= vertex:",
        "if child > vertex + 1:",
        "tests/vertices/test_as_walked.py::test_children_in_any_number",
    ),
    Fault(
        "vertex-child", "vertex function reads another child",
        "every child is the first one",
        "vertices/write_loops.py",
        "child = children[_at(offsets[_at(vertices[i])] + a)]",
        "child = children[_at(offsets[_at(vertices[i])])]",
        "tests/vertices/test_vertices.py::test_values_and_gradients_by_hand",
    ),
    Fault(
        "threads-share", "threads share a buffer",
        "parts of a kernel that threads compute have one memory for what it is given",
        "kernels/cpu/jobs.py",
        "address = job.out.address + part * job.out.distance",
        "address = job.out.address",
        "tests/runtime/test_number_of_threads.py::test_every_op_in_a_large_batch",
    ),
    Fault(
        "thread-cut", "threads leave a gap",
        "the last row of every part of a job is done by nobody",
        "kernels/cpu/jobs.py",
        "move_rows(stop - first, _rows_from",
        "move_rows(stop - first - 1, _rows_from",
        "tests/runtime/test_number_of_threads.py::test_models",
    ),
)
