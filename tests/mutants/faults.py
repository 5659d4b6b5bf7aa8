"""The faults that `python -m tests.mutants` plants, each with the test that catches it.

What is replaced is text of one module: when the module is rewritten, its fault is rewritten with it.
"""

from __future__ import annotations

from dataclasses import dataclass

FUZZ = "tests/fuzz/test_fuzz.py::test_random_programs"


@dataclass(frozen=True)
class Fault:
    """One fault.

    Args:
        name: of the mutant.
        kind: the class of faults that it stands for.
        path: of the module in `edbatch`.
        says: what is wrong then.
        old, new: the text that is replaced, which occurs there once, and what stands there instead.
        test: catches it.
    """

    name: str
    kind: str
    path: str
    says: str
    old: str
    new: str
    test: str


# fmt: off
FAULTS = (
    # Gradients of ops and bodies.
    Fault(
        "transposed-back", "wrong transposition", "graph/ops/shape.py",
        "the gradient of a transposition is transposed by its axes instead of their inverse",
        "transpose(g, [axes.index(axis) for axis in range(len(axes))])", "transpose(g, list(axes))",
        "tests/graph/test_gradients.py::test_in_a_cell[transpose-1]",
    ),
    Fault(
        "broadcast-axis", "broadcast over the wrong axis", "graph/cell/gradient_sum.py",
        "the gradient of a broadcast operand is summed over its own last axes",
        "gradient = sum(gradient, tuple(range(ahead)))",
        "gradient = sum(gradient, tuple(range(gradient.ndim - ahead, gradient.ndim)))",
        "tests/graph/ops/test_elementwise.py::test_equal_entries",
    ),
    Fault(
        "gradient-lost", "lost gradients", "graph/cell/gradient_sum.py",
        "of a value that is read several times in a cell only the last reader's gradient is kept",
        "return reduce(add, found) if found else None", "return found[-1] if found else None",
        FUZZ,
    ),
    Fault(
        "unread-output", "gradients of what is not read", "graph/cell/derivative.py",
        "an operand gets a gradient of zero times an infinite derivative from what nobody reads",
        "live = range(len(body.outputs)) if live is None else live", "live = range(len(body.outputs))",
        "tests/runtime/backward/test_live_outputs.py::test_what_is_not_read_has_no_gradient",
    ),
    Fault(
        "padding-read", "padding read as data", "graph/ops/pool.py",
        "max pooling pads with zeros, which are larger than negative entries",
        "padded(x, padding, -math.inf)", "padded(x, padding, 0.0)",
        "tests/graph/ops/test_windows.py::test_pools",
    ),
    # The backward pass through a graph.
    Fault(
        "stop-in-batches", "gradients leak through stopped edges", "runtime/backward/plan_writer.py",
        "an operand that some nodes of a batch read stopped gets gradients from all",
        "if access != GATHER_MANY and tables.stopped[window]:", "if False:",
        "tests/runtime/backward/test_backward.py::test_an_operand_that_is_stopped_in_one_of_two_batches",
    ),
    Fault(
        "constants-shared", "gradients leak to constants", "graph/record.py",
        "the zeros that ops compute with are those that users hold",
        "key = (op, shape, True) if inner else (op, shape)", "key = (op, shape)",
        "tests/graph/test_inner_constants.py::test_no_gradient_of_a_function_reaches_what_others_hold",
    ),
    Fault(
        "scatter-overwrites", "a scatter overwrites instead of adding", "kernels/row_kernels.py",
        "gradients that are added to rows one after the other replace what is there",
        "(Store(0, 1, there, add=True),)", "(Store(0, 1, there),)",
        "tests/runtime/backward/test_tables.py::test_rows_that_a_batch_reads_several_times",
    ),
    Fault(
        "gradient-twice", "gradients added twice", "graph/model/parameters.py",
        "rows of a table whose gradient is made dense stay in the list, and are added again",
        "+= rows[1]\n                self._came.clear()", "+= rows[1]",
        "tests/runtime/test_tied.py::test_tied_embeddings",
    ),
    Fault(
        "duplicate-rows", "look-up rows of duplicates lost", "kernels/cpu/backend.py",
        "of rows that were looked up several times one gradient is kept",
        "if (indices[1:] > indices[:-1]).all():\n            return np.array(indices, np.int64), rows.copy()",
        "if True:\n"
        "            found, first = np.unique(indices, return_index=True)\n"
        "            return found.astype(np.int64), rows[first].copy()",
        "tests/runtime/backward/test_backward.py::test_table_gradients_are_sparse",
    ),
    Fault(
        "second-root", "backward from a second root", "runtime/backward/backward.py",
        "the way back that is remembered is taken whatever expression it begins from",
        "*ran.saved, None, *self._roots", "*ran.saved",
        "tests/runtime/test_plan_cache.py::test_a_way_is_of_its_root",
    ),
    Fault(
        "list-members", "off-by-one segments", "runtime/backward/loops.py",
        "of lists of which only some have a gradient, members are counted from the first list on",
        "owners[at], members[at] = i, offsets[chosen[i]] + at - begins[i]", "owners[at], members[at] = i, at",
        FUZZ,
    ),
    # Plans and memory.
    Fault(
        "views-confused", "wrong rows gathered", "memory/plan/planner.py",
        "operands that are seen through several windows are all read through the first one",
        "alike &= _window(args[j], nodes, types) == shown", "alike &= args[j] >= 0",
        FUZZ,
    ),
    Fault(
        "block-rows", "memory layout off by some rows", "kernels/interpreter.py",
        "the second block of a large batch writes its results over those of the first",
        "here = Rows(result.address + begin * result.stride, result.stride, result.width)",
        "here = Rows(result.address, result.stride, result.width)",
        "tests/runtime/compile/test_program.py::test_blocks",
    ),
    Fault(
        "arena-moved", "an address kept after memory has grown", "memory/plan/arenas.py",
        "values are read where an arena lay before it grew",
        "if windows[at].arena != arena}", "}",
        "tests/memory/plan/test_arenas.py::test_rows_survive_growth_and_windows_follow",
    ),
    Fault(
        "value-is-a-view", "views aliasing memory that is reused", "runtime/evaluation.py",
        "a value that was read is a view of an arena, which the next graph writes to",
        "return found.copy() if found.shape else found[()]", "return found if found.shape else found[()]",
        "tests/runtime/test_graph.py::test_buffers_are_reused_and_values_are_not_shared",
    ),
    Fault(
        "plan-without-operands", "stale plans from the plan cache", "runtime/plan_cache.py",
        "small graphs of equal types share a plan, whatever their edges are",
        "return taken.types.tobytes(), taken.operands.tobytes(), integers", "return taken.types.tobytes(), integers",
        "tests/runtime/test_plan_cache.py::test_other_edges",
    ),
    Fault(
        "old-integers", "replay with old integers", "runtime/evaluation.py",
        "a graph with a cached plan reads zeros instead of its own integers",
        "self.integers = np.array(integers, np.int32)\n", "self.integers = np.zeros(len(integers), np.int32)\n",
        "tests/runtime/test_plan_cache.py::test_other_words",
    ),
    Fault(
        "old-inputs", "replay with old integers", "graph/replay/recording.py",
        "what is replayed reads the first inputs of the graph",
        "columns.append(len(graph.inputs))", "columns.append(0)",
        "tests/graph/replay/test_replay.py::test_it_is_as_without_the_decorator",
    ),
    # Types, traces, recordings.
    Fault(
        "classes-alike", "a batch mixes types", "base/exact.py",
        "attributes that are equal numbers of other classes (1, True) are one type",
        "if kind in _EQUAL_IF_SAME:\n        return kind, value\n    if kind is float:\n        return kind, struct",
        "if kind in _EQUAL_IF_SAME:\n        return value\n    if kind is float:\n        return kind, struct",
        "tests/base/test_exact.py::test_equal_values_of_other_types_or_bits_are_other_keys",
    ),
    Fault(
        "guard-not-compared", "stale traces", "graph/guard.py",
        "numbers, sets and arrays that a cell depends on may change without a new trace",
        "return want is not ANY and token(value, kind) != want", "return False",
        "tests/graph/test_function_state.py::test_a_change_between_two_graphs",
    ),
    Fault(
        "changed-in-a-graph", "a guard not compared", "graph/guard.py",
        "what a cell depends on may change between two calls in one graph",
        "change = None if guard.holds(owner, static) else guard", "change = None if True else guard",
        "tests/graph/test_function_state.py::test_a_change_inside_one_graph",
    ),
    Fault(
        "sample-changed", "stale recordings", "graph/replay/replay.py",
        "a sample that was changed in place is replayed as it was",
        "if one is None or not unchanged(one.parts):", "if one is None:",
        "tests/graph/replay/test_replay.py::test_a_sample_that_is_changed_in_place_is_recorded_again",
    ),
    Fault(
        "masks-kept", "kept dropout masks", "graph/columns.py",
        "all masks of a graph are drawn by one number",
        "self.next_draw = first + count", "self.next_draw = first",
        "tests/graph/test_draws.py::test_masks_of_neighbours_are_independent",
    ),
    # Losses and checks.
    Fault(
        "label-negative", "wrong label index", "graph/record.py",
        "a negative label counts from the end",
        "if as_integer(label) < 0:", "if False:",
        "tests/graph/ops/test_loss.py::test_a_label_is_never_negative",
    ),
    Fault(
        "distribution-as-labels", "cross-entropy of a distribution read as labels", "graph/ops/loss.py",
        "whole floats are taken for labels of an array of expressions",
        'if found is None or is_integers(found) or not found.ndim or found.dtype.kind not in "fiub":',
        'if found is not None and found.dtype.kind == "f" and found.ndim == 1:\n'
        "        return found.astype(int)\n"
        '    if found is None or is_integers(found) or not found.ndim or found.dtype.kind not in "fiub":',
        "tests/graph/test_rows_for_entries.py::TestLabels::test_whole_numbers_are_refused",
    ),
    Fault(
        "nan-unchecked", "NaN check switched off", "runtime/graph_errors.py",
        "check_nan does not look at results",
        "if bad.any():", "if False:",
        "tests/runtime/test_plan_cache.py::test_nan_is_found_again",
    ),
    # Scheduling.
    Fault(
        "states-confused", "policy states confused", "policy/state_table.py",
        "states of a machine that differ in their mark alone are one",
        "if table.mark[state] == mark and table.start", "if table.start",
        "tests/policy/test_state_table.py::test_marks_tell_states_apart",
    ),
    Fault(
        "fallbacks-miscounted", "FSM fallback miscounted", "policy/loops.py",
        "decisions in states that training has not met are not counted where all types are known",
        "            decisions += 1\n", "            decisions += int(state >= 0 or unknown)\n",
        "tests/policy/test_fsm.py::test_an_unseen_state_falls_back_to_the_rule_and_is_counted",
    ),
    Fault(
        "order-broken", "a schedule breaks an order", "runtime/lower.py",
        "a node whose operand is a part that comes after it is scheduled before that",
        "elif not is_source[types[operand]]:", "elif not is_source[types[operand]] and operand < i:",
        "tests/runtime/test_split.py::test_layers",
    ),
    Fault(
        "sums-by-type-number", "order of a sum", "runtime/lower.py",
        "types are scheduled in the order of their numbers, which follow from what the process ran before",
        "    kinds = np.empty(len(types), np.int32)\n    n = 0\n",
        "    kinds = np.empty(len(types), np.int32)\n"
        "    n = 0\n"
        "    for kind in np.unique(types):\n"
        "        number[kind] = n\n"
        "        present[n] = kind\n"
        "        n += 1\n",
        "tests/runtime/test_same_numbers.py::test_types_that_were_seen_in_another_order",
    ),
    # Training.
    Fault(
        "state-of-another", "optimizer state of the wrong parameter", "training/storage.py",
        "parameters that become a stack hand over what is remembered of them to its first rows",
        "self.slot(number, other.owner)[...] = slot", "self.slots[number][: len(slot)] = slot",
        "tests/training/test_trainer.py::test_parameters_may_be_stacked_between_updates",
    ),
    Fault(
        "untouched-rows", "sparse update of untouched rows", "training/storage.py",
        "all rows of a table are updated, also those without a gradient",
        "found = self.table.gradient_rows()",
        "import numpy as np\n        found = np.arange(self.table.shape[0]), self.table.gradient_array()",
        "tests/training/test_trainer.py::test_other_rows_of_a_table_are_left_alone",
    ),
    Fault(
        "half-an-update", "an interrupt leaves half an update", "training/trainer.py",
        "an interrupt during an update is heard of before all is counted",
        "with signals_deferred():  # a second call", "if True:  # a second call",
        "tests/runtime/test_interrupts.py::test_an_interrupt_at_some_lines[update]",
    ),
    Fault(
        "dtype-lost", "a checkpoint loses a dtype", "graph/model/checkpoint.py",
        "float64 is written to checkpoints as float32",
        "tensors = {name: parameter.value() for name, parameter in model.items()}",
        "tensors = {name: parameter.value().astype(np.float32) for name, parameter in model.items()}",
        "tests/graph/model/test_checkpoint.py::test_models_come_back",
    ),
    Fault(
        "dtype-path", "wrong dtype path", "graph/record.py",
        "numbers of float64 graphs are rounded to float32",
        "made = array_input(graph, np.asarray(float(value)))",
        "made = array_input(graph, np.asarray(np.float32(value)))",
        "tests/runtime/test_dtypes.py::test_numbers_have_the_digits_of_the_graph",
    ),
    # Several things at once.
    Fault(
        "answers-swapped", "coroutine answers swapped", "runtime/programs/rounds.py",
        "programs that wait get one another's values",
        "        for task in waiting:\n            asked = task.asked\n            task.answer",
        "        for task in reversed(waiting):\n            asked = task.asked\n            task.answer",
        "tests/runtime/programs/test_run.py::test_words_are_those_of_one_by_one",
    ),
    Fault(
        "requests-swapped", "serving answers swapped between requests", "serving/worker.py",
        "an answer goes to the request that has waited longest",
        "            request = self._flying.pop(number, None)\n"
        "            if request is not None and not request.alone",
        "            request = self._flying.pop(min(self._flying, default=number), None)\n"
        "            if request is not None and not request.alone",
        "tests/serving/test_batcher.py::test_answers_are_those_of_each_request_alone",
    ),
    Fault(
        "vertex-levels", "vertex function levels off", "vertices/input_graph.py",
        "children with higher numbers than their parents are taken to come before them",
        "(self._children >= np.arange(n)", "(self._children == np.arange(n)",
        "tests/vertices/test_input_graph.py::test_order_has_children_first",
    ),
    Fault(
        "thread-cut", "threads leave rows to nobody", "kernels/cpu/partitions.py",
        "the last row of every part of a job is copied by no thread",
        "move_rows(stop - first, _rows_from", "move_rows(stop - first - 1, _rows_from",
        "tests/runtime/test_number_of_threads.py::test_models",
    ),
)
# fmt: on
