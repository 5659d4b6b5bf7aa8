"""Functions and methods of modules that are recorded as one node a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from inspect import Parameter, Signature
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import edbatch as eb
from edbatch.base.signature import signature_of
from edbatch.errors import EdBatchError, shown
from edbatch.torch.operands import built, count_of, operands_of
from edbatch.torch.purity import functions_of
from edbatch.torch.recording import Recording, current, without_gradient
from edbatch.torch.state import changed, is_users, parts_of, state_of

#: States of a module (see `state_of`) of which cells are kept at a time.
STATES = 4

#: What every module has, and calls see by other means.
_INTERNAL = frozenset(vars(nn.Module())) - {"training"}


class Cells:
    """The cells of a module that one of its calls finds.

    Args:
        kept: by function, owner, form of the arguments and whether there are gradients, and then by the owner's state,
            what calls have made.
        module: whose they are.
        automatic: whether submodules are cells by themselves.

    Attributes:
        usual: of modules that are called with lazy tensors alone, the cell.
        recorded: the cells that were called.
    """

    def __init__(self, kept: dict[Any, dict[Any, TracedCell]], module: nn.Module, automatic: bool) -> None:
        self.automatic = automatic
        self.usual: dict[nn.Module, TracedCell] = {}
        self._kept, self._module = kept, module
        self._found: dict[Any, TracedCell] = {}
        self.recorded: set[TracedCell] = set()
        self._states: dict[tuple[int, bool], Any] = {}
        self._buffers: set[int] | None = None

    def of(self, function: Callable[..., Any], owner: Any, form: Any, is_marked: bool) -> TracedCell:
        """The cell of a function, whose arguments are of a form (see `operands_of`)."""
        key = function, owner, form, torch.is_grad_enabled(), is_marked
        found = self._found.get(key)
        if found is None:
            at = id(owner), is_marked
            if at not in self._states:
                self._states[at] = state_of(owner, not is_marked)
            kept, state = self._kept.setdefault(key, {}), self._states[at]
            made = kept.get(state) or kept.setdefault(state, TracedCell(function, owner, form, is_marked))
            self._found[key] = found = made
            while len(kept) > STATES:
                kept.pop(next(iter(kept)), None)
        return found

    def step(self, function: Callable[..., Any], *given: Any) -> Callable[..., Any]:
        """A function of ours with its first arguments, the last but one of which are parameters, as a cell."""
        *_, parameters, _ = given
        if not all(isinstance(x, nn.Parameter) for x in parameters):  # computed ones
            return partial(function, *given)
        kept: dict[Any, Any] = self._kept
        key = function, *given
        return kept.get(key) or kept.setdefault(key, eb.cell(partial(function, *given)))

    def is_buffer(self, tensor: Any) -> bool:
        """Whether a tensor is a buffer of the module, which belongs to the state."""
        if self._buffers is None:
            self._buffers = {id(buffer) for buffer in self._module.buffers()}
        return id(tensor) in self._buffers

    def expect_unchanged(self) -> None:
        """Check that owners are as they were when their cells were called first.

        Raises:
            EdBatchError: one is not.
        """
        for (owner, is_marked), cell in {(cell.owner, cell.is_marked): cell for cell in self.recorded}.items():
            found = changed(self._module, owner, self._states[id(owner), is_marked], is_marked)
            if found:
                raise EdBatchError(
                    f"edbatch.torch.Batched: {found} was changed while samples were recorded, but {cell.name} is a "
                    "cell and was traced with the first value; change it between mini-batches, pass it as an argument, "
                    'or leave it unmarked with Batched(..., cells="marked")'
                )


class TracedCell:
    """A function that is traced for arguments of one form.

    Attributes:
        owner, name, is_marked: whose function it is, and whether it was asked for.
        call: takes the operands (see `operands_of`), in their order.
        calls, traces: how many there were.
        failures: how often it could not be traced; after two, calls are recorded function by function.
        shares: whether it returns what it was given, a view of that, or something twice.
        count: of its operands, if each is an argument; else -1.
    """

    def __init__(self, function: Callable[..., Any], owner: Any, form: Any, is_marked: bool) -> None:
        self.calls = self.traces = self.failures = 0
        self.shares = False
        self._function = function if owner is None else MethodType(function, owner)
        self.owner, self.name, self.is_marked, self._form = owner, function.__qualname__, is_marked, form
        self.count = len(form[0]) if not any(form[0]) and None not in form[0] else -1
        own = vars(owner) if owner is not None else {}
        self._size, self._attributes = len(own), [(name, x) for name, x in own.items() if name not in _INTERNAL]
        self.call = eb.cell(self._of_operands())

    def is_as_it_was(self) -> bool:
        """Whether attributes of the owner are those that the cell was made for."""
        now = self.owner.__dict__
        for name, value in self._attributes:
            if now.get(name) is not value:
                return False
        return len(now) == self._size

    def _of_operands(self) -> Callable[..., Any]:
        """The function of operands, which leads EdBatch to the code that it depends on."""
        function: Any = lambda *operands, **static: self._traced(operands, static)  # noqa: E731
        # Of the owner itself, what the function names: what its other methods keep in it is no part of that.
        parts = parts_of(self.owner)
        classes = dict.fromkeys([type(part) for part in parts[int(self.is_marked) :] if is_users(type(part))])
        first = self.owner is None or is_users(type(self.owner))
        if self.is_marked:
            code = [self._function, *[part for kind in classes for part in (kind, kind.forward)]]
        else:  # calls look at the owner's attributes by themselves
            functions = functions_of(self.owner)
            self.failures = 0 if functions is not None else 2
            code = [*classes, *(functions or ())]
        function.__wrapped__ = tuple(code)
        function.__name__, function.__qualname__ = self._function.__name__, self._function.__qualname__
        function.__module__ = self._function.__module__ if first else next((kind.__module__ for kind in classes), "")
        function.__signature__ = self._signature()
        return function

    def _signature(self) -> Signature:
        """Operands by the names of the function, if it takes them as they are."""
        own = list(signature_of(self._function).parameters.values())
        positional = [p for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
        args, names = self._form
        if not names and len(args) <= len(positional) and all(part == 0 for part in args):
            found = [p.replace(default=p.empty) for p in positional[: len(args)]]
        else:
            found = [Parameter(f"x{at}", Parameter.POSITIONAL_OR_KEYWORD) for at in range(count_of(args))]
        return Signature([*found, *(p for p in own if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD))])

    def _traced(self, operands: tuple[Any, ...], static: dict[str, Any]) -> Any:
        recording = current.get()
        before, recording.origins = recording.origins, {}
        self.traces += 1
        attributes = [(vars(part), dict(vars(part))) for part in parts_of(self.owner)]
        found: Any = None
        try:
            args, names = self._form
            values = built(args, iter(operands))
            placed = len(values) - len(names)
            named = dict(zip(names, values[placed:], strict=True))
            found = self._function(*values[:placed], **named, **static)
            self.shares = self.shares or _shared(found, operands, recording.origins)
        finally:
            recording.origins = before
            names = _set_back(attributes)
        if names:
            raise EdBatchError(
                f"it changes {', '.join(names)} of its module, which would happen only when it is traced; return "
                "the new value, and assign it in the caller"
            )
        return found


def _set_back(attributes: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[str]:
    """Give modules their attributes back; the names of those that were others."""
    names: list[str] = []
    for now, held in attributes:
        found = [name for name in now | held if name not in now or name not in held or now[name] is not held[name]]
        if found:
            names += found
            now.clear()
            now.update(held)
    return names


def _shared(found: Any, operands: tuple[Any, ...], origins: dict[int, int]) -> bool:
    """Whether results are views of operands or of one another."""
    ids = [x.id for x in (*operands, *tree_leaves(found)) if isinstance(x, eb.Expression)]
    return len({origins.get(id_, id_) for id_ in ids}) != len(ids)


def noted(recording: Recording, made: Any, operands: Sequence[Any]) -> Any:
    """Results that may be views of what was given."""
    for x in tree_leaves(made):
        recording.note_views(x, operands)
    return made


def record(recording: Recording, found: TracedCell, operands: list[Any], static: dict[str, Any]) -> Any:
    """Record a call of a cell."""
    made = found.call(*operands, **static)
    found.calls += 1
    recording.cells.recorded.add(found)
    if found.shares:
        made = noted(recording, made, operands)
    return made if torch.is_grad_enabled() or not recording.grad else without_gradient(made)


class _Marked:
    """A function that is a cell where `Batched` records, and itself elsewhere."""

    __wrapped__: Callable[..., Any]
    __qualname__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args: Any, **static: Any) -> Any:
        function = self.__wrapped__
        recording = current.get(None)
        if recording is None or recording.origins is not None:
            return function(*args, **static)
        owner = args[0] if args and isinstance(args[0], nn.Module) else None
        operands: list[Any] = []
        form = operands_of(recording, args if owner is None else args[1:], operands, True)
        if form is None:
            raise EdBatchError(
                f"edbatch.torch.cell {self.__qualname__}: expected tensors of floats, and integers; got "
                f"{', '.join(map(shown, args))}"
            )
        return record(recording, recording.cells.of(function, owner, (form, ()), True), operands, static)


def cell(function: Callable[..., Any]) -> Any:
    """Mark a function, or a method of a module, whose calls `Batched` records as one node each, which is faster.

    It is traced once per tuple of argument shapes, so what it computes must follow from its arguments, its module's
    parameters and attributes; see `edbatch.cell`. Its arguments are tensors, and integers that are an index of
    `nn.Embedding` or a label of `F.cross_entropy`; what decides what it computes is given by keyword only
    (`def f(self, x, *, s)`). It returns tensors, or tuples, lists and dictionaries of some. Called otherwise it is as
    without the mark.

    Args:
        function: see above.

    Raises:
        EdBatchError: it is no function. When called: it reads a value, or an argument is something else.

    Example:
        >>> import torch, edbatch.torch
        >>> class Chain(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(2, 2)
        ...     @edbatch.torch.cell
        ...     def step(self, h):
        ...         return torch.tanh(self.layer(h)) + h
        ...     def forward(self, steps):
        ...         h = torch.zeros(2)
        ...         for _ in range(steps):
        ...             h = self.step(h)
        ...         return h
        >>> batched = edbatch.torch.Batched(Chain())
        >>> _ = batched([1, 5])
        >>> batched.last.report().nodes
        6
    """
    if not callable(function) or isinstance(function, type | torch.nn.Module):
        raise EdBatchError(f"edbatch.torch.cell: expected a function or a method, got {shown(function)}")
    return _Marked(function)
