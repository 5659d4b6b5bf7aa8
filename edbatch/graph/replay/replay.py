"""Replay: what a function records for a sample is kept, and appended again when the sample comes again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from functools import partial, update_wrapper
from threading import RLock
from typing import Any
from weakref import ref

from edbatch.base.exact import exact
from edbatch.base.numbers import checked_integer
from edbatch.base.signature import signature_of
from edbatch.errors import EdBatchError, shown
from edbatch.graph.array_graph import ArrayGraph
from edbatch.graph.cell.trace import Trace, traced
from edbatch.graph.cell.tree import flatten_result
from edbatch.graph.columns import Columns
from edbatch.graph.function_state import function_state
from edbatch.graph.guard import Held, by_owner
from edbatch.graph.opened import graphs
from edbatch.graph.record import graph_of
from edbatch.graph.replay.arguments import Arguments, is_model
from edbatch.graph.replay.recording import Recording, ReplayGraph
from edbatch.graph.replay.sample import unchanged
from edbatch.graph.replay.store import KeptRecording, State, Store

MEMORY = 1 << 28
TWICE = 16  # samples that are recorded twice: what differs is no function of them
_recording = RLock()  # one thread records at a time: what another has seen run may be refused in the end


def replay(function: Any = None, *, key: Callable[..., Hashable] | None = None, memory: int = MEMORY) -> Any:
    """Mark a function of a sample: what it records is kept, and appended again when the sample comes again.

    From the second epoch on a call costs no more than copying the nodes, and a graph of the same calls in the same
    order is not scheduled again. Values, gradients and batches are those without the decorator. Dropout draws new masks
    at each call. What the function does besides recording is done when it records.

    A sample is what it holds: numbers, texts, arrays, tuples, lists, dictionaries, sets, objects of Python classes.
    Equal samples share a recording, also when they are other objects. A sample that is changed in place is recorded
    again; looking whether it was takes about 25 ns for each entry of its lists, dictionaries and attributes, and
    nothing for what cannot change (tuples, texts, numbers): those are known by the object.

    Expressions among the arguments, also in tuples, lists, dictionaries and data classes, are operands, given anew at
    each call. The first argument may be a model, an object with parameters, as `self` is. What else the function may
    depend on is what a cell may (see `edbatch.cell`), the model as its owner; it is compared once for each graph: if it
    has changed, samples are recorded again, and earlier recordings are found when it is back. Inside one graph a change
    is an error, when the graph runs or its `with` block ends. Values are not read; random numbers (but `eb.dropout`)
    and clocks are found where one of the first 16 samples asks for some.

    Args:
        function: a function or method; its arguments are a model, samples and expressions.
        key: from the arguments (without the model) to what tells samples apart instead of what they hold. It is taken
            at its word: what a sample of one key holds is not looked at again.
        memory: bytes that recordings and samples take at most, for each model; those that were not used for longest
            are forgotten.

    Raises:
        EdBatchError: when called: a sample holds what nobody can see the changes of, the function reads a value, keeps
            state, or returns something else than expressions, numbers and texts in tuples, lists, dictionaries and data
            classes. At once: `memory` is no number of bytes, `key` no function.

    Example:
        >>> import edbatch as eb
        >>> table = eb.ParameterCollection(seed=0).add_lookup_parameters((3, 2), init=[[0, 1], [2, 3], [4, 5]])
        >>> @eb.replay
        ... def total(words):
        ...     return eb.sum([eb.lookup(table, word) for word in words])
        >>> sentence = (0, 2, 2)
        >>> for epoch in range(2):
        ...     with eb.Graph():
        ...         y = total(sentence)
        ...     print(y.value())
        [ 8. 11.]
        [ 8. 11.]
    """
    memory = checked_integer("replay", "memory", memory)
    if key is not None and not callable(key):
        raise EdBatchError(f"replay: key: expected a function of the arguments, got {shown(key)}")
    if function is None:
        return partial(replay, key=key, memory=memory)
    if isinstance(function, classmethod | staticmethod):
        return type(function)(replay(function.__func__, key=key, memory=memory))
    made = Replay(function, key, memory)
    top, own, stores = graphs.top.get, made.own, made.stores

    def call(*args: Any, **keywords: Any) -> Any:
        graph: Any = top().value
        try:  # one sample, which may be known by its `id`, after a model or alone
            sample = args[-1]
            serial, state = own.live if len(args) == 1 else stores[id(args[0])].live
            one = state.by_object[id(sample)]
            if serial != graph.serial or graph.careful or len(args) > 2 or keywords:
                return made.call(args, keywords)
        except (AttributeError, IndexError, KeyError):  # no graph, or what is new
            return made.call(args, keywords)
        if one.parts and not unchanged(one.parts):
            return made.call(args, keywords)
        one.used = True
        return one.recording.append(graph, [])

    return update_wrapper(call, function)


class Replay:
    """A decorated function, and what it has recorded for each model.

    Attributes:
        own: recordings of calls without a model.
        stores: of each model, by its `id`.
    """

    def __init__(self, function: Any, key: Callable[..., Hashable] | None, memory: int) -> None:
        if not callable(function) or isinstance(function, type):
            raise EdBatchError(f"replay: expected a function, got {function!r}")
        self.function = function
        self.place = f"replay {getattr(function, '__qualname__', function)}"
        kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(is_kind(function) for is_kind in kinds):
            raise EdBatchError(f"{self.place}: expected a function that returns, got one that waits or yields")
        self._names = list(signature_of(function).parameters)
        self._is_method = self._names[:1] in (["self"], ["cls"])
        self._key = key
        self._memory = memory
        self.own = Store(lambda: self, memory)
        self.stores: dict[int, Store] = {}

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Append what is known for the sample, or record it."""
        if not args and keywords and self._names[0] in keywords:
            keywords = dict(keywords)
            args = (keywords.pop(self._names[0]),)
        store = self.stores.get(id(args[0])) if args else None
        if store is None and args and (self._is_method or (self._key is not None and is_model(args[0]))):
            store = self._store_of(args[0])
        return self._call(store or self.own, args, keywords)

    def _call(self, store: Store, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        models = args[: store is not self.own]
        given = Arguments(args[len(models) :], keywords)
        graph: Any = graph_of(self.place, given.expressions)
        if isinstance(graph, ArrayGraph):  # of which each entry is an operand
            graph = graph.base
        if isinstance(graph, Trace):
            return self.function(*args, **keywords)
        state = store.state(graph)
        told = None if self._key is None else self._told(given.args, keywords)
        one = state.by_object.get(given.same) if self._key is None else state.by_content.get((told, given.kind))
        if one is None or not unchanged(one.parts):
            if not models and args and is_model(args[0]):
                return self._call(self._store_of(args[0]), args, keywords)
            given, one = self._new(given, told, models, graph, store, state)
        elif graph.options.check:
            self._expect_same(one.recording, self._recorded(given, models, graph)[0], "recorded once more")
        one.used = True
        return one.recording.append(graph, given.operands)

    def _store_of(self, model: Any) -> Store:
        made: Store = by_owner(self.stores, model, lambda held: Store(held, self._memory), self.place)
        return made

    def _told(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What the key says."""
        assert self._key is not None
        found = self._key(*args, **keywords)
        try:
            return exact(found)
        except TypeError:
            raise EdBatchError(
                f"{self.place}: key= gave {type(found).__name__}; expected a number, a text, or a tuple of such"
            ) from None

    def _new(
        self, given: Arguments, told: Any, models: tuple[Any, ...], graph: Columns, store: Store, state: State
    ) -> tuple[Arguments, KeptRecording]:
        """What is known of a sample that is another object now, or else its recording."""
        by_content = self._key is None
        given, sample = given.sample(self.place, strict=by_content)
        content = sample.digest if by_content else told, given.kind
        with _recording:
            one = state.by_content.get(content)
            if one is None:
                recording = self._recorded_anew(given, sample.classes, models, graph, store, state)
                parts, same = (sample.parts, given.same) if by_content else ((), None)
                bytes = recording.bytes + sample.bytes
                one = KeptRecording(recording, given.values, parts, bytes, content, same)
                store.keep(state, one)
            elif by_content:
                state.find(one, given.values, sample.parts, given.same)
        return given, one

    def _recorded_anew(
        self, given: Arguments, classes: frozenset[type], models: tuple[Any, ...], graph: Columns, store: Store,
        state: State,
    ) -> Recording:  # fmt: skip
        """Record a sample; the first ones in a state twice. The state has the guards of all that they depend on."""
        recording, guards = self._recorded(given, models, graph)
        if len(state.by_content) < TWICE:
            self._expect_same(recording, self._recorded(given, models, graph)[0], "called twice")
        if not state.guards:
            guard = function_state(self.place, self.function, *models)
            guards[id(guard), 0] = guard, store.owner if models else ref(self), None
        if new := tuple(classes - state.classes):
            guard = function_state(self.place, self.function, static=new)
            guards[id(guard), 0] = guard, ref(self), new
            state.classes |= classes
        state.guards |= guards
        state.note(graph, frozenset())
        return recording

    def _recorded(self, given: Arguments, models: tuple[Any, ...], graph: Columns) -> tuple[Recording, dict[Any, Held]]:
        """What a call records, and what cells and replayed functions in it depend on."""
        own = ReplayGraph(self.place, graph)
        args, keywords = given.placed(own)
        result = traced(own, lambda: self.function(*models, *args, **keywords))
        own.expect_unchanged()
        leaves, tree = flatten_result(self.place, result)
        if any((x.graph.base or x.graph) is not own for x in leaves):
            raise EdBatchError(
                f"{self.place}: it returns an expression that was there before, or uses one; give it as an argument"
            )
        return Recording(own, len(given.operands), leaves, tree), own.held

    def _expect_same(self, recording: Recording, again: Recording, when: str) -> None:
        if not recording.is_like(again):
            raise EdBatchError(
                f"{self.place}: keeps state: {when}, it records two different things; it must be a function of its "
                "arguments and of what does not change while it runs. Use eb.dropout, or pass what is random, or "
                "another each time, as an argument"
            )
