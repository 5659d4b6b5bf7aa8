"""Reading files one sample at a time, and skipping what is malformed."""

import pytest

from edbatch import EdBatchError
from edbatch.data.dependencies import random_dependencies, read_conllu, stream_conllu, write_conllu
from edbatch.data.lattices import read_lattices, stream_lattices, write_lattices
from edbatch.data.parallel import read_parallel, stream_parallel
from edbatch.data.random_lattices import random_lattices
from edbatch.data.stream import lines
from edbatch.data.tagged import read_tagged, stream_tagged
from edbatch.data.trees import read_trees, stream_trees


@pytest.fixture
def write(tmp_path):
    def written(text, name="file.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def test_samples_are_read_when_they_are_asked_for(write):
    path = write("(1 a)\n\n(2 b)\r\n(3 c)\n(4")
    trees = stream_trees(path)
    assert [str(tree) for tree in trees.take(2)] == ["(1 a)", "(2 b)"]  # what is malformed comes later
    assert str(next(trees)) == "(3 c)"
    with pytest.raises(EdBatchError, match=r"file.txt:5: column 3: expected a word"):
        next(trees)


def test_a_file_is_not_kept(write):
    line = b"(3 (2 so) (4 good))\n"
    path = write(line * 3_000)
    trees = stream_trees(path)
    assert len(next(trees)) == 3
    assert sum(len(tree) for tree in trees) == 3 * 2_999


def test_malformed_lines_are_skipped_and_counted(write):
    text = b"(3 (2 so) (4 good))\nwrong\n(3 \xff)\n\n(1 a)\n"
    path = write(text)
    trees = stream_trees(path, skip_bad=True)
    assert list(map(str, trees)) == ["(3 (2 so) (4 good))", "(1 a)"]
    assert trees.skipped == 2
    assert trees.first_skipped == f"{path}:2: column 1: expected '(', found 'wrong'"
    assert read_trees(path, skip_bad=True)[1:] == read_trees(write("(1 a)\n", "good.txt"))
    path = write("a|O b|I\na|O b\n")
    sentences = stream_tagged(path, skip_bad=True)
    assert ([str(x) for x in sentences], sentences.skipped) == (["a|O b|I"], 1)
    assert len(read_tagged(path, skip_bad=True)) == 1


def test_text_in_another_encoding_is_told_by_line(write):
    with pytest.raises(EdBatchError, match=r"file.txt:2: not UTF-8 text \(byte 3 of the line\)"):
        read_trees(write(b"(1 a)\n(1 \xe4)\n"))


def test_nothing_but_malformed_lines(write):
    path = write("x\ny\n")
    with pytest.raises(EdBatchError, match=r"no trees in it; .* \(2 malformed, the first: .*file.txt:1: column 1"):
        read_trees(path, skip_bad=True)


def test_sentences_of_a_dependency_file(write, tmp_path):
    good = random_dependencies(3, seed=0)
    path = tmp_path / "trees.conllu"
    write_conllu(path, good)
    first, rest = path.read_text().split("\n\n", 1)
    path.write_text(f"{first}\n\nnot ten columns\n{first}\n\n# a comment\n{rest}")
    sentences = stream_conllu(path, skip_bad=True)
    assert (list(sentences), sentences.skipped) == (good, 1)
    assert read_conllu(path, skip_bad=True) == good
    assert next(stream_conllu(path)) == good[0]


def test_sentences_without_a_translation(write):
    a, b = write("x\ny\nz\nv\n", "a"), write("u\n\nw\n", "b")
    pairs = stream_parallel(a, b, skip_bad=True)
    assert (list(pairs), pairs.skipped) == ([(["x"], ["u"]), (["z"], ["w"])], 2)
    assert pairs.first_skipped == f"{b}:2: expected a sentence for line 2 of {a}, found a blank line"
    assert len(read_parallel(a, b, skip_bad=True)) == 2


LATTICES = random_lattices(4, seed=3)


@pytest.mark.parametrize("change", ["a letter", "a line less", "a line more", "cut off", "no number of nodes"])
def test_malformed_lattices(tmp_path, change):
    path = tmp_path / "lattices.txt"
    write_lattices(path, LATTICES)
    head, *texts = path.read_text().removesuffix("\n\n").split("\n\n")
    head, _, first = head.partition("\n")
    texts = [first, *texts]
    at = 3 if change == "cut off" else 1
    lattice = texts[at].split("\n")
    if change == "a letter":
        lattice[3] += " x"
    elif change == "a line more":
        lattice.append("1 0 7")
    elif change == "no number of nodes":
        del lattice[0]
    else:
        del lattice[-1]
    texts[at] = "\n".join(lattice)
    path.write_text("\n".join([head, "\n\n".join(texts), ""]))
    kept = [lattice for number, lattice in enumerate(LATTICES) if number != at]
    found = stream_lattices(path, skip_bad=True)
    if change == "a line more":  # is where the next lattice would begin
        assert (next(found), next(found)) == (LATTICES[0], LATTICES[1])
        assert (list(found), found.skipped) == ([LATTICES[2]], 2)
    else:
        assert (list(found), found.skipped) == (kept, 1)
        assert read_lattices(path, skip_bad=True) == kept
    assert f"{path}:" in found.first_skipped
    with pytest.raises(EdBatchError, match=r"lattices.txt:\d+: expected "):
        read_lattices(path)


def test_what_cannot_be_read_is_no_malformed_line(tmp_path):
    for read in (read_trees, read_tagged, read_conllu, read_lattices):
        with pytest.raises(EdBatchError, match=r"none.txt: cannot be read"):
            read(tmp_path / "none.txt", skip_bad=True)
        with pytest.raises(EdBatchError, match=r"cannot be read"):
            read(tmp_path, skip_bad=True)


def test_lines_know_their_place(write):
    path = write("a\r\n \nb")
    assert [(line.number, line.text, line.is_blank) for line in lines(path)] == [
        (1, "a", False), (2, " ", True), (3, "b", False),
    ]  # fmt: skip


def test_trees_can_be_binary(write):
    path = write("(1 (2 a) (2 b) (3 c))\n")
    assert list(stream_trees(path, binary=True)) == [tree.binarized() for tree in read_trees(path)]
