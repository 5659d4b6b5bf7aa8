"""Switches, in force in a block: `with eb.options(training=False): ...`."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, ContextDecorator
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Any, TypeAlias

from edbatch.base.context_stack import ContextStack, OpenContext
from edbatch.base.numbers import checked_integer
from edbatch.errors import EdBatchError, checked_flag, shown, warn
from edbatch.graph.opened import graphs

if TYPE_CHECKING:
    from edbatch.graph.columns import Columns


@dataclass(frozen=True)
class Options:
    """What is switched on.

    Args:
        training: off to evaluate a model: `dropout` gives its operand back, in cells too (which have a trace of their
            own for it).
        threads: that compute on the CPU, at most, where other work needs the cores; 0: as many as EDBATCH_THREADS
            says, or as there are cores that this process may use (4 at most, and 1 in processes that `multiprocessing`
            has started). Large batches are cut at places that do not depend on the number, so that values and gradients
            have the same bits for all. While other programs use the cores, as few compute as are faster than one;
            `report()` says how many.
        precision: of matrix products of float32 on a GPU, where speed matters more: "float32", "tf32" (10 bits of
            mantissa) or "bf16" (7 bits); sums are of float32 in any case. On the CPU always float32.
        recompute: where memory is short: going back through a cell computes all of its intermediate values again. Off:
            a forward run that `backward` starts saves those that cost more than element-wise ops.
        profile: to see where time goes: `report().by_type()` has times. Batches run one by one, and on a GPU each is
            waited for: on a CPU, 10 to 25 microseconds a batch more.
        trace_lines: to find where a NaN came from: errors while a graph runs (under `check_nan`) say the file and the
            line where the node was recorded; of a cell, where it was called. Recording takes about three times as long.
        cells: off to see the ops inside of cells in reports, pictures and errors: calls record the cell's body op by
            op; on: one node.
        split: off to see each call of a cell as one node: on, what a cell in a recurrence does not wait for, and what
            the recurrence does not need of it, run in batches of their own before and after it; and large products of
            what is looked up are computed once for equal look-ups.
        record: on a GPU, mini-batches whose plan comes again are recorded (as CUDA graphs), and enqueued by one call.
            Off where other code captures or profiles what is enqueued.
        check: to find what a cell or a replayed function depends on and must not (see the guide): each call computes
            anew what is kept, and a difference is an error. Recording takes a hundred times as long.
        compile: "plain" where you suspect that EdBatch computes something wrong: ops and cells are compiled as they are
            written, without the passes that simplify a body, batch and stack inside of it, plan its layout, and fuse
            element-wise ops. If the numbers then differ by more than rounding, report it. By default what
            EDBATCH_DEBUG_COMPILE says, or "full".
    """

    training: bool = True
    threads: int = 0
    precision: str = "float32"
    recompute: bool = False
    profile: bool = False
    trace_lines: bool = False
    cells: bool = True
    split: bool = True
    record: bool = True
    check: bool = False
    compile: str = "full"

    @cached_property
    def plain(self) -> bool:
        """Whether no optimising pass runs."""
        return self.compile == "plain"

    @cached_property
    def without(self) -> tuple[str, ...]:
        """What is switched off of what traces of cells depend on."""
        return ("training",) * (not self.training) + ("passes",) * self.plain

    @cached_property
    def variant(self) -> str:
        """The same as part of a name; empty if nothing is switched off."""
        return "".join(f"_{name}" for name in self.without)


MOST_THREADS = 64
_CHOICES = {"precision": ("float32", "tf32", "bf16"), "compile": ("full", "plain")}
_VARIABLE = "EDBATCH_DEBUG_COMPILE"

_Changes: TypeAlias = tuple[tuple[str, bool | str | int], ...]
# Those that a graph has from where it was opened.
_OF_GRAPHS = ("cells", "check", "compile", "training", "trace_lines")

#: What each changes, so that one that ends takes its changes with it, and no others.
_blocks: ContextStack[_OptionsBlock] = ContextStack("edbatch_options")


def _chosen(name: str, place: str, value: Any) -> str:
    if not isinstance(value, str) or value not in _CHOICES[name]:
        raise EdBatchError(f"{place}={shown(value)}: expected one of {', '.join(_CHOICES[name])}")
    return value


_DEFAULT = Options(compile=_chosen("compile", _VARIABLE, os.environ.get(_VARIABLE) or "full"))


def current_options() -> Options:
    """The options in force."""
    if _blocks.top.get().below is None:
        return _DEFAULT
    return _changed(*(block.value.changes for block in _blocks if block.value is not None))


@lru_cache(1000)
def _changed(*changes: _Changes) -> Options:
    """The options in blocks that change these, the innermost first."""
    named = {name: value for block in reversed(changes) for name, value in block}
    return replace(_DEFAULT, **named)  # type: ignore[arg-type]


class _OptionsBlock(ContextDecorator):
    """A `with` block, or several at a time, in which some options differ."""

    def __init__(self, changes: _Changes) -> None:
        self.changes = changes
        self._entered: list[OpenContext[_OptionsBlock]] = []
        self._graphs: dict[Any, tuple[Columns, int]] = {}  # by block: that was open, and how many nodes it had

    @_blocks.entering
    def __enter__(self, block: OpenContext[_OptionsBlock]) -> Options:
        graph = graphs.innermost()
        if graph is not None:
            self._graphs[block] = graph, graph.n
        return current_options()

    @_blocks.leaving
    def __exit__(self, block: OpenContext[_OptionsBlock], *_: object) -> None:
        graph, n = self._graphs.pop(block, (None, 0))
        if graph is None or graph.n == n or graphs.innermost() is not graph:
            return
        has: Options = graph.options
        in_vain = [
            f"{name}={value}" for name, value in self.changes if name in _OF_GRAPHS and value != getattr(has, name)
        ]
        if in_vain:
            warn(
                f"options: {', '.join(in_vain)} changed nothing of what was recorded in this block: a graph has the "
                "options that it was opened with; expected `eb.options` around `eb.Graph()`"
            )


def options(*given: Any, **changes: bool | str | int) -> AbstractContextManager[Options]:
    """Graphs opened and run inside the block have these options; what is not named stays as it is.

    A graph that is open already keeps `training`, `cells`, `check`, `compile` and `trace_lines`; a warning says so.

    Like those of `Graph` and `device`, blocks of generators and coroutines may end in any order.

    Raises:
        EdBatchError: there is no such option, or it does not take this value.

    Example:
        >>> import edbatch as eb
        >>> @eb.cell
        ... def twice(x):
        ...     return eb.tanh(eb.tanh(x))
        >>> with eb.options(cells=False), eb.Graph() as graph:
        ...     y = twice(eb.ones(3))
        >>> graph.run()
        >>> graph.report().nodes
        2
    """
    if given:
        raise EdBatchError(f"options: expected options by name, as in options(training=False), got {shown(given[0])}")
    known = [field.name for field in fields(Options)]
    for name, value in changes.items():
        if name not in known:
            raise EdBatchError(f"there is no option {name!r}; there are {', '.join(known)}")
        if name == "threads":
            changes[name] = checked_integer("options", name, value, least=0, most=MOST_THREADS)
        elif name in _CHOICES:
            changes[name] = _chosen(name, f"option {name}", value)
        else:
            changes[name] = checked_flag(f"option {name}", value)
    return _OptionsBlock(tuple(changes.items()))


# What there is, and what it is by default, is said in one place.
if Options.__doc__ and options.__doc__:  # which `python -OO` leaves out
    _about = cleandoc(Options.__doc__)  # indented before Python 3.13 alone
    options.__doc__ = cleandoc(options.__doc__).replace("Raises:", _about[_about.index("Args:") :] + "\n\nRaises:", 1)
options.__signature__ = Signature(  # type: ignore[attr-defined]
    [Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default) for field in fields(Options)]
)
