"""Rows copied from anywhere to anywhere.

All is in bytes, a multiple of 4 of them: rows are copied by words of 4 bytes, entries of float32 or halves of float64.
Arrays that Numba indexes with signed numbers would be tested for counting from the end, which keeps the inner loop from
being vectorised (measured: 2.5 GB/s, without the test 20 GB/s).
"""

from __future__ import annotations

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import words_at
from edbatch.kernels.tables import Listed

WORD = 4


@compiled(error_model="numpy")
def move_rows(n: int, source: Listed, target: Listed) -> None:
    """n rows of the source to rows of the target, of its width; a stride of 0 repeats one row."""
    words = target.rows.width // WORD
    first, to, stride, distance = source.rows.address, target.rows.address, source.rows.stride, target.rows.stride
    listed, positions = words_at(source.list), words_at(target.list)
    if source.list != 0 and target.list == 0:  # by far the most: without a question for each row
        for i in range(n):
            read, written = words_at(first + listed[i] * stride), words_at(to + i * distance)
            for j in range(words):
                written[j] = read[j]
        return
    for i in range(n):
        row = listed[i] if source.list != 0 else i
        position = positions[i] if target.list != 0 else i
        read, written = words_at(first + row * stride), words_at(to + position * distance)
        for j in range(words):
            written[j] = read[j]
