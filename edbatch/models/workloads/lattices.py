"""Workloads over lattices of characters and words."""

from __future__ import annotations

from dataclasses import replace

from edbatch.data.lattices import Lattice, sizes, stream_lattices
from edbatch.data.random_lattices import random_lattices
from edbatch.models.lattice import LatticeGRU, LatticeLSTM
from edbatch.models.workloads.workload import Numbered, Workload


def _number_lattices(lattices: list[Lattice]) -> Numbered:
    found = sizes(lattices)
    return Numbered([(lattice.arcs,) for lattice in lattices], found, list(range(found.tags)))


_LATTICES = Workload(
    noun="lattice",
    place="character",
    files=("lattices",),
    folder=("lattice/train.txt",),
    stream=stream_lattices,
    generate=random_lattices,
    number=_number_lattices,
    network=LatticeLSTM,
    right=lambda lattice: lattice.tags[1:],
)

NINE = {"lattice-lstm": _LATTICES, "lattice-gru": replace(_LATTICES, network=LatticeGRU)}
