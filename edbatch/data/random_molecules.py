"""Made-up molecules: small graphs of rings and chains, so that graph networks need no data set."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

ATOMS = {"C": 0.74, "N": 0.12, "O": 0.10, "S": 0.02, "F": 0.02}  # how often each is one of a molecule's
MOST_BONDS = 3  # of an atom that more is bound to


class Molecule(NamedTuple):
    """Atoms and the bonds between them.

    Attributes:
        atoms: the element of each.
        bonds: pairs of positions in `atoms`, each pair once.
        rings: of each atom whether it is part of a ring.
    """

    atoms: list[str]
    bonds: list[tuple[int, int]]
    rings: list[bool]

    @property
    def neighbours(self) -> list[list[int]]:
        """Per atom the positions of those that it is bound to."""
        found: list[list[int]] = [[] for _ in self.atoms]
        for a, b in self.bonds:
            found[a].append(b)
            found[b].append(a)
        return found


def random_molecules(n: int, seed: int) -> list[Molecule]:
    """`n` made-up molecules of 9 to about 40 atoms, connected, with rings of five and six.

    They have 24 atoms and 26 bonds on average; those of ZINC's 12,000, without hydrogen, have 23 and 25. Equal seeds
    give equal molecules, in every version of Python; fewer molecules are the first of more.

    Example:
        >>> molecule = random_molecules(1, seed=1)[0]
        >>> len(molecule.atoms), len(molecule.bonds), sum(molecule.rings)
        (26, 29, 22)
    """
    random = Random(seed)
    return [_molecule(random) for _ in range(n)]


def _molecule(random: Random) -> Molecule:
    molecule, degrees = Molecule([], [], []), list[int]()

    def bind(a: int, b: int) -> None:
        molecule.bonds.append((a, b))
        degrees[a] += 1
        degrees[b] += 1

    def add(ring: bool) -> int:
        # random() alone is promised to be the same in every version of Python.
        drawn, names = random.random(), list(ATOMS)
        while len(names) > 1 and drawn >= ATOMS[names[0]]:
            drawn -= ATOMS[names.pop(0)]
        molecule.atoms.append(names[0])
        molecule.rings.append(ring)
        degrees.append(0)
        return len(degrees) - 1

    wanted = 9 + int(15 * random.random()) + int(15 * random.random())
    while len(molecule.atoms) < wanted:
        free = [at for at, degree in enumerate(degrees) if degree < MOST_BONDS]  # the last of a chain always is
        beside = free[int(len(free) * random.random())] if free else None  # None for the first atom
        if random.random() < 0.25:
            ring = [add(True) for _ in range(5 if random.random() < 0.3 else 6)]
            for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
                bind(a, b)
            first = ring[0]
        else:
            first = add(False)
        if beside is not None:
            bind(beside, first)
    return molecule
