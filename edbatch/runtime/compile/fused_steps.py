"""Runs of nodes as kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from edbatch.graph.cell.body import Body, Value
from edbatch.graph.cell.passes.entries import Strides, along
from edbatch.graph.cell.passes.fuse import Run, reads
from edbatch.graph.cell.passes.goes_through import LENGTH, GoesThrough, goes_through
from edbatch.graph.op import Kind
from edbatch.graph.sources import PARAMETER
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import SAME, Count, Index, Integer, Kernel, Load, Place, Store, Whole
from edbatch.kernels.program import Step
from edbatch.runtime.compile.placed_steps import kinds, told
from edbatch.runtime.compile.places import Parts, Row
from edbatch.runtime.compile.steps import CellStep

# Whose rows a kernel reads or writes: those of a node's value, or of the cell; or the one row of numbers that are the
# same for all.
Whose = int | Row | Literal["numbers"]
NUMBERS: Literal["numbers"] = "numbers"


def fused_step(body: Body, run: Run, parts: Parts) -> CellStep:
    """The step of a run."""
    operands, places = reads(body, run)
    numbers = [_number(body, operand) for operand in operands]
    loaded = tuple([operand for operand, number in zip(operands, numbers, strict=True) if number is None])

    def encode(link: Any) -> Step:
        return _Making(body, run, parts, link).step({place: numbers[at] for place, at in places.items()})

    return CellStep(encode, loaded, run.stores)


class _Access(NamedTuple):
    """What is read or written: whose, from which column on, and how far apart along the axes of the run."""

    whose: Whose
    column: int
    strides: Strides
    more: int = 0  # of what is picked, the distance between neighbours
    picked: int | None = None  # and which it is: -1 - the number of a call's integer
    entries: int = 0  # or of how many, if the node's second operand says which it is
    each: bool = False  # whether there is a row for each element of a list

    def along(self, axes: list[tuple[int, int]]) -> Strides:
        """Strides along the axes of the kernel; each element of a list has a row of its own."""
        return tuple([0 if size == LENGTH else self.strides[axis] for axis, size in axes])


class _Making:
    """The kernel of a run, given how parameters lie."""

    def __init__(self, body: Body, run: Run, parts: Parts, link: Any) -> None:
        self.body, self.run, self.parts, self.link = body, run, parts, link
        self.through: dict[int, GoesThrough] = {}
        self.lies: dict[tuple[int, tuple[int, ...], Strides], Strides] = {}  # what `_along_all` has found
        self.integers: dict[int, int] = {}  # of calls, those that the kernel takes
        self.places: dict[tuple[Whose, bool], int] = {}  # and whether there is a row for each element of a list
        self.columns: dict[_Access | int, int] = {}  # of accesses; or integers, the same for all rows
        self.numbers: dict[str, int] = {}  # by their text: kernels that differ in these alone are one

    def step(self, inputs: Mapping[tuple[int, int], float | None]) -> Step:
        """The step; `inputs`: of the operands from outside, as (node, operand slot), the number; None: it is read."""
        body, run, link = self.body, self.run, self.link
        loads = {place: self._load(*place) for place, number in inputs.items() if number is None}
        stores = {node: self._store(node) for node in run.stores}
        numbers = [
            self._along_all(through.size, through.shape, strides)
            for through in (run.through[node] for node in run.nodes if body.nodes[node].payload)
            for strides in through.numbers.values()
        ]
        axes = self._joined([*(access.strides for access in (*loads.values(), *stores.values())), *numbers])
        make, columns = Builder(), self.columns
        accessed: dict[_Access, tuple[int, Strides, int]] = {}
        runs: list[int] = []  # strides of what is read, as the kernel's instructions are, and then of what is written

        def of(access: _Access) -> tuple[int, Strides, int]:
            if access not in accessed:
                strides = access.along(axes)
                runs.extend(told((*strides, access.more)))
                column = columns.setdefault(access, len(columns))
                accessed[access] = self._place(access.whose, access.each), kinds(strides), column
            return accessed[access]

        computed: dict[int, int] = {}
        for node in run.nodes:
            operands: list[int] = []
            for slot, operand in reversed([*enumerate(body.nodes[node].operands)]):  # an index before what it picks
                access = loads.get((node, slot))
                if access is not None and (access.entries or access.picked is not None):
                    at, kind = self._index(make, access, operands), kinds((access.more,))[0]
                    operands.insert(0, make.add(Load(*of(access), index=at, along=kind)))
                elif access is not None:
                    operands.insert(0, make.add(Load(*of(access))))
                elif operand.node in computed:
                    operands.insert(0, computed[operand.node])
                else:
                    number = inputs[node, slot]
                    assert number is not None
                    operands.insert(0, make.number(number) if number in (0, 1) else self._number(make, number, axes))
            computed[node] = self._value(make, node, operands, axes)
        accessed.clear()  # what is written where it is read has its strides once more
        of_stores = {node: of(access) for node, access in stores.items()}
        written = tuple([Store(computed[node], *of[:2], column=of[2]) for node, of in of_stores.items()])
        outer = sum(not run.reduced[axis] for axis, _ in axes)
        places = tuple(Place(each, whose == NUMBERS) for whose, each in self.places)
        sizes = [size for _, size in axes]
        lists = sizes.index(LENGTH) if LENGTH in sizes else None
        kernel = Kernel(outer, len(axes) - outer, places, make.instructions, written, lists, link.dtype)
        positions = [self._position(whose) for whose, _ in self.places]
        begins = [access.column if isinstance(access, _Access) else access for access in columns]
        return link.kernel_step(kernel, sizes, positions, [*runs, *begins], [*self.integers])

    def _value(self, make: Builder, number: int, operands: list[int], axes: list[tuple[int, int]]) -> int:
        """What a node computes."""
        node = self.body.nodes[number]
        type, through = node.type, self.run.through[number]
        if type.op.scalar:
            values = dict(zip("xyz", operands, strict=False))
            numbers = [(name, value) for name, value in type.attributes if isinstance(value, float)]
            values |= {name: self._number(make, value, axes) for name, value in numbers}
            if node.payload:
                values["integer"] = self._integer(make, node.payload[0])
            for name, strides in through.numbers.items():
                values[name] = self._numbering(make, self._along_all(through.size, through.shape, strides), axes)
            return make.expression(type.op.scalar, **values)
        if type.op.picks and len(operands) == 2:
            x, index = operands
            entries = self._whole(make, type.operands[0].shape[dict(type.attributes)["axis"]])
            return make.expression("x if i >= 0 and i < n else nan", x=x, i=index, n=entries)
        (x,) = operands
        if type.op.segments and _number(self.body, node.operands[0]) == 1:
            return make.add(Count([size for _, size in axes].index(LENGTH)))
        if any(through.reduced):
            return make.reduce(type.op.reduction, x)
        return make.expression("0 if x != 0 else -1", x=x) if type.op.reduction == "first" else x

    def _index(self, make: Builder, access: _Access, operands: list[int]) -> int:
        """Which entry of what is picked; of indices that a user computes, one that is there."""
        if access.picked is not None:
            return self._integer(make, access.picked)
        (index,) = operands
        text = "at = i if i >= 0 else 0\nat if at < last else last"
        return make.expression(text, i=index, last=self._whole(make, access.entries - 1))

    def _integer(self, make: Builder, given: int) -> int:
        """One of the calls' integers (-1 - its number), or one that is the same for all."""
        if given >= 0:
            return self._whole(make, given)
        return make.add(Integer(self.integers.setdefault(-1 - given, len(self.integers))))

    def _numbering(self, make: Builder, strides: Strides, axes: list[tuple[int, int]]) -> int:
        """The number of an entry along those axes for which there are strides, row by row."""
        found: int | None = None
        for _, at in sorted((axis, at) for at, (axis, _) in enumerate(axes) if strides[axis]):
            index = make.add(Index(at))
            if found is None:
                found = index
            else:
                found = make.compute("add", make.compute("multiply", found, make.add(Count(at))), index)
        return self._whole(make, 0) if found is None else found

    def _whole(self, make: Builder, integer: int) -> int:
        """An integer that is the same for all rows."""
        return make.add(Whole(self.columns.setdefault(integer, len(self.columns))))

    def _number(self, make: Builder, number: float, axes: list[tuple[int, int]]) -> int:
        """A number that is the same for all rows."""
        entry = self.numbers.setdefault(float(number).hex(), len(self.numbers))
        return make.add(Load(self._place(NUMBERS), (SAME,) * len(axes), entry=entry))

    def _place(self, whose: Whose, each: bool = False) -> int:
        return self.places.setdefault((whose, each), len(self.places))

    def _position(self, whose: Whose) -> tuple[int, int]:
        """Slot and column of a place."""
        if whose == NUMBERS:
            return self.link.numbers(map(float.fromhex, self.numbers))
        if isinstance(whose, str):
            return self.link.row(whose), 0
        return self.link.at(Value(whose))

    def _load(self, number: int, slot: int) -> _Access:
        """What a node reads from memory."""
        node = self.body.nodes[number]
        operand = node.operands[slot]
        through = self._through(number)
        strides = self._along_all(through.size, through.shape, through.strides[slot])
        whose, column = self.parts.whole(operand.node)
        each = self.body.nodes[operand.node].type.out.each
        found = _Access(whose, column + through.firsts[slot], strides, each=each)
        if slot or not node.type.op.picks:
            return found
        if not node.payload:
            entries = node.type.operands[0].shape[dict(node.type.attributes)["axis"]]
            return found._replace(more=through.along, entries=entries)
        (at,) = node.payload
        if at >= 0:
            return found._replace(column=found.column + at * through.along)
        return found._replace(more=through.along, picked=at)

    def _through(self, number: int) -> GoesThrough:
        """How a node goes through its operands, as parameters lie."""
        if number not in self.through:
            node, through = self.body.nodes[number], self.run.through[number]
            reads = any(self.body.nodes[value.node].type.op is PARAMETER for value in node.operands)
            self.through[number] = goes_through(self.body, node, self.link.strides) if reads else through
        return self.through[number]

    def _store(self, number: int) -> _Access:
        out = self.body.nodes[number].type.out
        whose, column = self.parts.whole(number)
        shape, strides = ((LENGTH, out.size), (out.size, 1)) if out.each else ((out.size,), (1,))
        return _Access(whose, column, self._along_all(math.prod(shape), shape, strides), each=out.each)

    def _along_all(self, entries: int, shape: tuple[int, ...], strides: Strides) -> Strides:
        """Strides along the run's axes; what has one number for each group is the same along the others."""
        key = entries, shape, strides
        if key not in self.lies:
            run = self.run
            axes = run.axes_of(entries)
            found = along(shape, strides, [run.sizes[axis] for axis in axes])
            assert found is not None
            known = dict(zip(axes, found, strict=True))
            self.lies[key] = tuple([known.get(axis, 0) for axis in range(len(run.sizes))])
        return self.lies[key]

    def _joined(self, accesses: list[Strides]) -> list[tuple[int, int]]:
        """The axes of the kernel, those of groups last: the last axis of the run that is one of it, and the size."""
        run = self.run
        found: list[tuple[int, int]] = []
        for inside in (False, True):
            axes: list[tuple[int, int]] = []
            for axis in (axis for axis in range(len(run.sizes)) if run.reduced[axis] == inside):
                size = run.sizes[axis]
                together = axes and axes[-1][1] != LENGTH
                if together and all(strides[axes[-1][0]] == size * strides[axis] for strides in accesses):
                    size *= axes.pop()[1]
                axes.append((axis, size))
            found += axes
        return found


def _number(body: Body, operand: Value) -> float | None:
    """The number that a constant operand is, None if it is none."""
    node = body.nodes[operand.node]
    if node.type.op.kind is not Kind.SOURCE:
        return None
    if node.type.op.name in ("zeros", "ones"):
        return float(node.type.op.name == "ones")
    return float(node.value) if node.value is not None and np.ndim(node.value) == 0 else None
