"""Made-up molecules and points: what their docstrings promise."""

from math import atan2

import pytest

from edbatch.data.random_molecules import ATOMS, MOST_BONDS, random_molecules
from edbatch.data.random_points import random_labelled_points, random_points

MOLECULES = random_molecules(1000, seed=1)


@pytest.mark.parametrize("generate", [random_molecules, random_points, random_labelled_points])
def test_fewer_are_the_first_of_more(generate):
    assert generate(3, 4) == generate(9, 4)[:3]
    assert generate(3, 4) != generate(3, 5)


def test_molecules_are_connected():
    for molecule in MOLECULES:
        n, reached, waiting = len(molecule.atoms), {0}, [0]
        while waiting:
            for other in molecule.neighbours[waiting.pop()]:
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        assert reached == set(range(n))
        assert len(molecule.rings) == n
        assert len(set(map(frozenset, molecule.bonds))) == len(molecule.bonds)
        assert max(map(len, molecule.neighbours)) <= MOST_BONDS
        assert set(molecule.atoms) <= set(ATOMS)


def test_atoms_of_rings_are_on_a_way_back():
    """An atom is in a ring exactly if one of its bonds can be taken away and both ends are still connected."""
    for molecule in MOLECULES[:100]:
        on_cycle = set()
        for bond in molecule.bonds:
            (start, end), reached = bond, {bond[0]}
            waiting = [start]
            while waiting:
                at = waiting.pop()
                for other in molecule.neighbours[at]:
                    if {at, other} != set(bond) and other not in reached:
                        reached.add(other)
                        waiting.append(other)
            if end in reached:
                on_cycle |= set(bond)
        assert [at in on_cycle for at in range(len(molecule.atoms))] == molecule.rings


def test_sizes_are_those_that_are_documented():
    atoms, bonds = (sum(len(part) for part in parts) / 1000 for parts in list(zip(*MOLECULES, strict=True))[:2])
    assert 23 < atoms < 26
    assert 25 < bonds < 28
    assert min(len(molecule.atoms) for molecule in MOLECULES) == 9


def test_points_are_met_by_their_angle():
    for points, order in random_points(50, seed=2):
        assert 5 <= len(points) <= 20
        angles = [atan2(points[at][1] - 0.5, points[at][0] - 0.5) for at in order]
        assert angles == sorted(angles)
    point = random_labelled_points(1, 0, dimensions=5, classes=3)[0]
    assert len(point.x) == 5
    assert point.x[point.label] == max(point.x[:3])
