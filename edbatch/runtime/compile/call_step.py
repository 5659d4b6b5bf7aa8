"""The steps of foreign ops: from compiled code to the functions of users, and back."""

from __future__ import annotations

from ctypes import c_int64
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

from edbatch.base.locking import allow_reentry
from edbatch.errors import EdBatchError
from edbatch.graph.cell.body import Body, Value
from edbatch.graph.cell.passes.entries import by_rows
from edbatch.graph.foreign import Call
from edbatch.graph.model.exchange import UNREADABLE, refuse_masked
from edbatch.graph.node_type import NodeType
from edbatch.graph.spec import Shape
from edbatch.kernels.backend import Array, Backend
from edbatch.kernels.program import Step
from edbatch.kernels.tables import PLACE
from edbatch.runtime.compile.steps import CellStep


def call_step(body: Body, number: int) -> CellStep:
    """The step of a foreign op."""
    node = body.nodes[number]

    def encode(link: Any) -> Step:
        made, key = node.type.op.call.made, (node.type, link.backend)
        if key not in made:
            made[key] = BatchCall(*key)
        places = [link.at(operand) for operand in (*node.operands, Value(number))]
        return link.call_step(made[key], places)

    return CellStep(encode, node.operands, (number,))


class _Part(NamedTuple):
    """An array in the rows of a place.

    Attributes:
        word: which of the words is the address of the place.
        begin: bytes from the beginning of a row.
        shape, strides: of what is in a row.
    """

    word: int
    begin: int
    shape: Shape
    strides: Shape


class BatchCall:
    """Calls a function of the user's for a batch of a type."""

    def __init__(self, type: NodeType, backend: Backend) -> None:
        call: Call = type.op.call
        bound, dtype = call.bind(type), type.out.dtype
        self._name, self._run, self._backend, self._dtype = call.name, bound.run, backend, dtype
        *given, self._results = [
            [
                _Part(
                    1 + PLACE * at, dtype.itemsize * begin, shape, tuple([dtype.itemsize * x for x in by_rows(shape)])
                )
                for begin, shape in zip(accumulate(map(prod, shapes), initial=0), shapes, strict=False)
            ]
            for at, shapes in enumerate((*bound.given, bound.results))
        ]
        self._given = [part for parts in given for part in parts]
        self._words = c_int64 * (1 + PLACE * (len(given) + 1))

    def __call__(self, address: int) -> None:
        """Call it once.

        Args:
            address: of words: the number of nodes; then, per operand and of the result, where the first row begins,
                bytes from one to the next, and 0.
        """
        words, dtype, array_at = self._words.from_address(address), self._dtype, self._backend.array_at
        n, arrays = words[0], []
        for at, begin, shape, strides in self._given:
            array = array_at(words[at] + begin, (n, *shape), (words[at + 1], *strides), dtype)
            arrays.append(array.copy())  # a view would show what comes next in this memory to who keeps it
        kind = array.__class__
        with allow_reentry():
            try:
                pairs = zip(self._results, self._run(arrays), strict=True)
                found = [self._checked((n, *part.shape), x, kind) for part, x in pairs]
            except Exception as error:
                text = str(error) if isinstance(error, EdBatchError) else f"{type(error).__name__}: {error}"
                raise EdBatchError(f"{self._name}: {text}") from error
        for (at, begin, shape, strides), array in zip(self._results, found, strict=True):
            array_at(words[at] + begin, (n, *shape), (words[at + 1], *strides), dtype)[...] = array

    def _checked(self, shape: Shape, found: Any, kind: type) -> Array | int:
        """An array of the device, which a function has returned; 0 for None."""
        if found is None:
            return 0
        if found.__class__ is not kind:
            refuse_masked(found, "a result")
            try:
                found = self._backend.shared(found)
            except UNREADABLE as error:
                got = type(found).__name__
                raise EdBatchError(f"expected an array of the device, got {got} ({error})") from None
        if found.dtype != self._dtype or found.shape != shape:
            got = f"{found.dtype}{list(found.shape)}"
            raise EdBatchError(f"expected an array {self._dtype}{list(shape)}, got {got}")
        return found
