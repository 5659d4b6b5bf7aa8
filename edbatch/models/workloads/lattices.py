"""Workloads over lattices of characters and words."""

from __future__ import annotations

from dataclasses import replace

import edbatch as eb
from edbatch.data.lattices import Lattice, Sizes, sizes, stream_lattices
from edbatch.data.random_lattices import random_lattices
from edbatch.models.lattice import LatticeGRU, LatticeLSTM
from edbatch.models.workloads.workload import Known, Numbered, Workload


def _know_lattices(lattices: list[Lattice]) -> Known:
    """Files have numbers: as many rows of tables as there are."""
    return {"sizes": list(sizes(lattices))}


def _number_lattices(lattices: list[Lattice], known: Known) -> Numbered:
    found = Sizes(*known["sizes"])
    for at, lattice in enumerate(lattices, start=1):
        for name, size in sizes([lattice])._asdict().items():
            if size > getattr(found, name):
                most = getattr(found, name) - 1
                raise eb.EdBatchError(f"lattice {at}: expected {name} up to {most}, as the model has, got {size - 1}")
    return Numbered([(lattice.arcs,) for lattice in lattices], found, list(range(found.tags)))


_LATTICES = Workload(
    noun="lattice",
    place="character",
    files=("lattices",),
    folder=("lattice/train.txt",),
    stream=stream_lattices,
    generate=random_lattices,
    know=_know_lattices,
    numbered=_number_lattices,
    network=LatticeLSTM,
    right=lambda lattice: lattice.tags[1:],
)

NINE = {"lattice-lstm": _LATTICES, "lattice-gru": replace(_LATTICES, network=LatticeGRU)}
