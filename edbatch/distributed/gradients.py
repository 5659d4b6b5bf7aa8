"""What workers send one another: gradients, of dense parameters in one buffer and of tables as rows.

A reduction has two rounds. Each worker owns a slice of the buffer, and of each table every n-th row; it gets the
gradients that others have of these, adds them up in the order of the workers, and sends the sums to all. So each
worker sends (n - 1) / n of its gradients and of the sums, which is the least there is (Patarasuk and Yuan 2009), in two
rounds for any n; and all have the same bits, since each sum is computed once. Parameters without a gradient are not
sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import time

import numpy as np

from edbatch.base.exclusive import Whole, lock
from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.training.arrays import backend_of


@dataclass
class Piece:
    """Gradients of what one worker owns.

    Attributes:
        present: of all dense parameters, whether there is a gradient.
        entries: of those in the owner's slice that there are, one after the other.
        rows: by number of the table the rows, ascending, and their gradients.
        loss: sum of the losses; and n, how many there are.
        sent: when, in seconds.
    """

    present: np.ndarray
    entries: np.ndarray
    rows: dict[int, tuple[np.ndarray, np.ndarray]]
    loss: float = 0.0
    n: int = 0
    sent: float = field(default_factory=time)

    @property
    def bytes(self) -> int:
        """That are sent."""
        return sum(x.nbytes for x in (self.present, self.entries, *(y for pair in self.rows.values() for y in pair)))


class Layout:
    """Where the gradients of a model lie in the buffer, and who owns what.

    Args:
        model: parameters.
        n: workers.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W, embed = model.add_parameters(3, name="W"), model.add_lookup_parameters((9, 2), name="embed")
        >>> layout = Layout(model, 2)
        >>> W.set_grad([1, 2, 3])
        >>> embed.add_rows(np.array([4, 7]), np.ones((2, 2), np.float32))
        >>> one, two = layout.pieces()
        >>> one.entries, two.entries, one.rows[0][0], two.rows[0][0]
        (array([1.], dtype=float32), array([2., 3.], dtype=float32), array([4], dtype=int32), array([7], dtype=int32))
        >>> layout.take([layout.added([one, one], 0), layout.added([two, two], 1)])
        >>> W.grad(), embed.sparse_grad()[0]
        (array([2., 4., 6.], dtype=float32), array([4, 7]))
    """

    def __init__(self, model: ParameterCollection, n: int) -> None:
        self._n = n
        self._dense = [x for x in model.values() if not isinstance(x, LookupParameters)]
        self._tables = [x for x in model.values() if isinstance(x, LookupParameters)]
        ends = np.cumsum([0, *(_size(x) for x in self._dense)]).tolist()
        self._buffer = np.zeros(ends[-1], model.dtype)
        self._places = [slice(*ends[at : at + 2]) for at in range(len(self._dense))]
        self._slices = [slice(ends[-1] * at // n, ends[-1] * (at + 1) // n) for at in range(n)]

    def pieces(self) -> list[Piece]:
        """The gradients that have come, by owner; they are views of the buffer, until the next call."""
        with lock:
            present = np.array([x.has_grad for x in self._dense], bool)
            for at in np.flatnonzero(present).tolist():
                x = self._dense[at]
                self._entries(at)[...] = backend_of(x).to_host(_by_memory(x, x.gradient_array()))
            rows = [x.sparse_grad() for x in self._tables]
        found = []
        for owner in range(self._n):
            own = {}
            for number, pair in enumerate(rows):
                if pair is not None:
                    chosen = pair[0] % self._n == owner if self._n > 1 else slice(None)
                    own[number] = pair[0][chosen].astype(np.int32), pair[1][chosen]
            parts = [self._buffer[part] for part in self._parts(owner, present)]
            found.append(Piece(present, parts[0] if len(parts) == 1 else _joined(parts, self._buffer.dtype), own))
        return found

    def added(self, pieces: Sequence[Piece], owner: int) -> Piece:
        """The sum of what all have sent to an owner, in their order."""
        present = np.logical_or.reduce([piece.present for piece in pieces])
        total = np.zeros(sum(part.stop - part.start for part in self._parts(owner, present)), self._buffer.dtype)
        for piece in pieces:
            if (piece.present == present).all():
                total += piece.entries
            else:
                into = np.repeat(piece.present, [part.stop - part.start for part in self._places])
                among = np.repeat(present, [part.stop - part.start for part in self._places])
                whole = self._slices[owner]
                total[into[whole][among[whole]]] += piece.entries
        rows = {}
        for number, table in enumerate(self._tables):
            given = [piece.rows[number] for piece in pieces if number in piece.rows]
            if given:
                listed = np.concatenate([x for x, _ in given]), np.concatenate([x for _, x in given])
                numbers, sums = _equal_rows_added(*listed)
                rows[number] = numbers, sums.reshape(-1, *table.shape[1:])
        return Piece(present, total, rows, sum(piece.loss for piece in pieces), sum(piece.n for piece in pieces))

    def take(self, pieces: Sequence[Piece]) -> None:
        """Have these gradients, the sums of all owners, and no others."""
        present = pieces[0].present
        for owner, piece in enumerate(pieces):
            at = 0
            for part in self._parts(owner, present):
                self._buffer[part] = piece.entries[at : at + part.stop - part.start]
                at += part.stop - part.start
        with lock, Whole():
            for x in (*self._dense, *self._tables):
                x.zero_grad()
            for number in np.flatnonzero(present).tolist():
                x = self._dense[number]
                with backend_of(x).active():
                    array = _by_memory(x, x.accumulator()[0])
                    array[...] = backend_of(x).from_host(self._entries(number), "C")
            for number, table in enumerate(self._tables):
                given = [piece.rows[number] for piece in pieces if number in piece.rows]
                if given:
                    numbers, sums = (np.concatenate(list(x)) for x in zip(*given, strict=True))
                    order = np.argsort(numbers)
                    with backend_of(table).active():
                        table.add_rows(numbers[order].astype(np.int64), backend_of(table).from_host(sums[order], "C"))

    def _entries(self, number: int) -> np.ndarray:
        """Of a parameter, in the buffer, in the order of its memory."""
        shape = self._dense[number].shape
        return self._buffer[self._places[number]].reshape(shape[::-1] if len(shape) == 2 else shape)

    def _parts(self, owner: int, present: np.ndarray) -> list[slice]:
        """The parts of the buffer that are in an owner's slice and of parameters that are there; neighbours joined."""
        return list(_joined_slices(self._cut(owner, present)))

    def _cut(self, owner: int, present: np.ndarray) -> Iterator[slice]:
        whole = self._slices[owner]
        for number in np.flatnonzero(present).tolist():
            place = self._places[number]
            low, high = max(place.start, whole.start), min(place.stop, whole.stop)
            if low < high:
                yield slice(low, high)


def _size(parameter: Parameter) -> int:
    return int(np.prod(parameter.shape, dtype=np.int64))


def _by_memory(parameter: Parameter, array: np.ndarray) -> np.ndarray:
    """Matrices are stored [in, out]."""
    return array.T if len(parameter.shape) == 2 else array


def _joined(parts: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _joined_slices(parts: Iterator[slice]) -> Iterator[slice]:
    last: slice | None = None
    for part in parts:
        if last is not None and last.stop == part.start:
            last = slice(last.start, part.stop)
        else:
            if last is not None:
                yield last
            last = part
    if last is not None:
        yield last


def _equal_rows_added(numbers: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each number once, ascending, and the sum of its values in their order."""
    order = np.argsort(numbers, kind="stable")
    ranked = numbers[order]
    begins = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    if len(begins) == 0 or not len(ranked):
        return numbers, values
    return ranked[begins], np.add.reduceat(values[order], begins, axis=0)
