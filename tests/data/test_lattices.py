"""Lattices: files, sizes, made-up ones; every error names its line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch import EdBatchError
from edbatch.data.lattices import Arc, Lattice, read_lattices, sizes, write_lattices
from edbatch.data.random_lattices import random_lattices

IDS = st.integers(0, 10**9 - 1)
RANDOM = random_lattices(500, seed=1)
GOOD = "2\n3\n0 1 2\n0 \n1 0 7\n2 1 8 0 30\n\n1\n4\n0\n"


@st.composite
def lattices(draw):
    tags = draw(st.lists(IDS, min_size=1, max_size=6))
    arcs = [()]
    for node in range(1, len(tags)):
        to_node = draw(st.lists(st.tuples(st.integers(0, node - 1), IDS), min_size=1, max_size=4))
        arcs.append(tuple(Arc(*arc) for arc in to_node))
    return Lattice(tags, arcs)


@given(st.lists(lattices(), min_size=1, max_size=4))
def test_files_round_trip(tmp_path_factory, made):
    path = tmp_path_factory.mktemp("lattices") / "lattices.txt"
    write_lattices(path, made)
    assert read_lattices(path) == made


def test_reading(tmp_path):
    path = tmp_path / "lattices.txt"
    path.write_text(GOOD)
    assert read_lattices(path) == [
        Lattice([0, 1, 2], [(), (Arc(0, 7),), (Arc(1, 8), Arc(0, 30))]),
        Lattice([4], [()]),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("2\n3", "two\n3"), "1: expected the number of lattices, from 1 on, found 'two'"),
        (("2\n3", "0\n3"), "1: expected the number of lattices, from 1 on, found '0'"),
        (("2\n3", "2\n-3"), "2: expected the number of nodes of lattice 1 of 2, from 1 on, found '-3'"),
        (("0 1 2", "0 1"), "3: expected the 3 tags of lattice 1 of 2, found '0 1'"),
        (("0 1 2", "0 1 X"), "3: expected the 3 tags of lattice 1 of 2, found '0 1 X'"),
        (("0 \n1 0", "1 0 4\n1 0"), "4: expected '0', no arcs to node 0, of lattice 1 of 2, found '1 0 4'"),
        (
            ("1 0 7", "0"),
            "5: expected 'k source id ...' with the arcs to node 1, from nodes before it, of lattice 1 of 2",
        ),
        (("1 0 7", "1 1 7"), "5: expected 'k source id ...' with the arcs to node 1"),
        (("2 1 8 0 30", "2 1 8 0"), "6: expected 'k source id ...' with the arcs to node 2"),
        (("2 1 8 0 30", "2 1 8"), "6: expected 'k source id ...' with the arcs to node 2"),
        (("8 0 30", f"8 0 {'9' * 30}"), f"found '2 1 8 0 {'9' * 30}'"),
        (("8 0 30", f"8 0 {'9' * 60}"), f"found '2 1 8 0 {'9' * 32}...'"),
        (("4\n0\n", "4\n0\n9\n"), "11: expected nothing after the last lattice, found '9'"),
    ],
)
def test_errors_name_line_and_expectation(tmp_path, change, message):
    path = tmp_path / "lattices.txt"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(EdBatchError, match=re.escape(message)) as error:
        read_lattices(path)
    assert re.match(re.escape(f"{path}:") + r"\d+: expected ", str(error.value))


@pytest.mark.parametrize("lines", range(10))
def test_a_file_that_was_cut_off(tmp_path, lines):
    path = tmp_path / "lattices.txt"
    path.write_text("".join(GOOD.splitlines(keepends=True)[:lines]))
    with pytest.raises(EdBatchError, match=rf"lattices.txt:{lines + 1}: expected .*, found the end"):
        read_lattices(path)


def test_missing_and_no_text(tmp_path):
    with pytest.raises(EdBatchError, match=r"none.txt: cannot be read"):
        read_lattices(tmp_path / "none.txt")
    (tmp_path / "bytes.txt").write_bytes(b"1\n\xff\n")
    with pytest.raises(EdBatchError, match=r"bytes.txt:2: not UTF-8 text \(byte 0 of the line\)"):
        read_lattices(tmp_path / "bytes.txt")


def test_real_lattices(data_folder):
    train = read_lattices(data_folder / "lattice" / "train.txt")
    dev = read_lattices(data_folder / "lattice" / "dev.txt")
    assert (len(train), len(dev)) == (1147, 113)
    assert sum(map(len, train)) == 50618
    assert sizes(train + dev) == (2256, 10966, 18)
    assert [len(arcs) for arcs in train[0].arcs] == [0, 1, 2, 2, 1, 1, 2, 1, 1, 2, 1, 2, 1]


def test_equal_seeds_give_equal_lattices():
    assert random_lattices(20, seed=1) == RANDOM[:20]
    assert random_lattices(20, seed=2) != RANDOM[:20]


def test_random_lattices_are_like_real_ones():
    nodes = sum(len(lattice) - 1 for lattice in RANDOM)
    words = sum(len(arcs) - 1 for lattice in RANDOM for arcs in lattice.arcs[1:])
    assert 35 < nodes / len(RANDOM) < 50  # real ones: 43
    assert 0.35 < words / nodes < 0.6  # 0.53
    for lattice in RANDOM:
        for node, arcs in enumerate(lattice.arcs):
            assert [arc.source for arc in arcs[:1]] == ([node - 1] if node else [])
            assert all(node - 4 <= arc.source < node - 1 for arc in arcs[1:])


def test_the_longest_word_decides_the_tag():
    of_word = {}
    for lattice in RANDOM:
        for tag, arcs in zip(lattice.tags[1:], lattice.arcs[1:], strict=True):
            if len(arcs) == 1:
                assert tag == 0
            else:
                word = min(arcs)[1]
                assert of_word.setdefault(word, tag) == tag
    assert set(of_word.values()) == {0, 1, 2, 3}
    assert sizes(RANDOM).tags == 4


def test_words_have_their_own_characters():
    spelled = {}
    for lattice in RANDOM:
        text = [arcs[0].id for arcs in lattice.arcs[1:]]
        for node, arcs in enumerate(lattice.arcs):
            for source, word in arcs[1:]:
                assert spelled.setdefault(word, text[source:node]) == text[source:node]
    assert len(spelled) == len({tuple(text) for text in spelled.values()}) == sizes(RANDOM).words - 1
