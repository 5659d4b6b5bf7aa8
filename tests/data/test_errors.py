"""Malformed files: every error names file and line and what was expected there; or they are skipped and counted."""

import re

import pytest

from edbatch import EdBatchError, EdBatchWarning
from edbatch.data.dependencies import read_conllu
from edbatch.data.lattices import random_lattices, read_lattices, write_lattices
from edbatch.data.parallel import read_parallel
from edbatch.data.programs import read_programs
from edbatch.data.sentences import read_pieces, read_sentences
from edbatch.data.tagged import read_tagged
from edbatch.data.trees import read_trees, write_trees


def word(number=1, form="a", head=0, columns=10):
    """A line of CoNLL-U."""
    return "\t".join([str(number), form, *["_"] * 4, str(head), "r", *["_"] * (columns - 8)]) + "\n"


def step(text):
    """A program whose second step is this."""
    return f'{{"program": [{{"function": "scene"}}, {text}]}}'


LATTICES = "2\n3\n0 1 2\n0 \n1 0 7\n2 1 8 0 30\n\n1\n4\n0\n"
ARCS = "expected 'k source id ...' with the arcs, from nodes before it, to node"
BAD = [
    (read_trees, "\n \n", ": no trees in it; expected one per line, such as (3 (2 so) (4 good))"),
    (read_trees, "(3 so)\r\n\nword", ":3: column 1: expected '(' and a label (0, 1, 2, ...), found 'word'"),
    (read_trees, ")", ":1: column 1: expected '(' and a label (0, 1, 2, ...), found ')'"),
    (read_trees, "()", ":1: column 1: expected '(' and a label (0, 1, 2, ...), found '('"),
    (read_trees, "(3 (good))", ":1: column 4: expected a word and ')', or '(label', after the label 3, found '(good'"),
    (read_trees, "(-1 a)", ":1: column 1: expected '(' and a label (0, 1, 2, ...), found '(-1'"),
    (read_trees, f"({'9' * 5000} a)", f"found '({'9' * 198}..."),
    (read_trees, "(3)", ":1: column 3: expected a word and ')', or '(label', after the label 3, found ')'"),
    (read_trees, "(3 so good)", ":1: column 4: expected a word and ')', or '(label', after the label 3, found 'so'"),
    (read_trees, "(3 (2 so) good)", ":1: column 11: expected '(label' or ')', found 'good'"),
    (read_trees, "(3 (2 so)", ":1: column 10: expected '(label' or ')', found the end"),
    (read_trees, "(3 so))", ":1: column 7: expected nothing after the tree, found ')'"),
    (read_trees, "(3 so) (4 good)", ":1: column 8: expected nothing after the tree, found '(4'"),
    (read_trees, b"(1 a)\n(1 \xe4)\n", ":2: not UTF-8 text (byte 3 of the line)"),
    (read_tagged, "\n", ": no sentences in it; expected one per line, such as Minoru|I-PER plays|O"),
    (read_tagged, "a|O\n\na|O b", ":3: column 5: expected word|TAG, found 'b'"),
    (read_tagged, "  a|", ":1: column 3: expected word|TAG, found 'a|'"),
    (read_tagged, "|O", ":1: column 1: expected word|TAG, found '|O'"),
    (read_tagged, "x" * 50, f":1: column 1: expected word|TAG, found '{'x' * 50}'"),
    (read_conllu, "# nothing\n\n\n", ": no sentences in it; expected lines of ten columns"),
    (read_conllu, "one two three\n", ":1: expected 10 columns between tabs, found 'one two three'"),
    (read_conllu, word(columns=9), ":1: expected 10 columns"),
    (read_conllu, word() + word(3), ":2: expected word 2 with the number of its head"),
    (read_conllu, word(head="_"), ":1: expected word 1 with the number"),
    (read_conllu, word(form=""), ":1: expected word 1"),
    (read_conllu, word(head=-1), ":1: expected word 1"),
    (read_conllu, word(head=1), ":1: expected a tree, but the heads of word 1 do not lead to the root"),
    (read_conllu, word() + word(2, head=4) + word(3, head=2) + word(4, head=3), ":2: expected a tree, but the heads"),
    (read_conllu, word() + word(2, head=7), ":2: expected a tree"),
    (read_conllu, word("2-3"), ":1: expected a word with a number"),
    (read_conllu, "\n" + word() + "\n# two\n" + word(head=1), ":5: expected a tree"),
    (read_lattices, "", ":1: expected the number of lattices, from 1 on, found ''"),
    (read_lattices, LATTICES.replace("2\n3", "two\n3"), ":1: expected the number of lattices, from 1 on, found 'two'"),
    (read_lattices, LATTICES.replace("2\n3", "0\n3"), ":1: expected the number of lattices, from 1 on, found '0'"),
    (read_lattices, LATTICES.replace("2\n3", "2\n-3"), ":2: expected the number of nodes, one less than the 4 lines"),
    (read_lattices, LATTICES.replace("0 1 2", "0 1"), ":3: expected the tags of 3 nodes, found '0 1'"),
    (read_lattices, LATTICES.replace("0 1 2", "0 1 X"), ":3: expected the tags of 3 nodes, found '0 1 X'"),
    (read_lattices, LATTICES.replace("0 \n1", "1 0 4\n1"), ":4: expected '0', no arcs to node 0, found '1 0 4'"),
    (read_lattices, LATTICES.replace("1 0 7", "0"), f":5: {ARCS} 1, found '0'"),
    (read_lattices, LATTICES.replace("1 0 7", "1 1 7"), f":5: {ARCS} 1"),
    (read_lattices, LATTICES.replace("2 1 8 0 30", "2 1 8 0"), f":6: {ARCS} 2"),
    (read_lattices, LATTICES.replace("2 1 8 0 30", "2 1 8"), f":6: {ARCS} 2"),
    (read_lattices, LATTICES.replace("8 0 30", f"8 0 {'9' * 60}"), f"found '2 1 8 0 {'9' * 60}'"),
    (read_lattices, LATTICES.replace("2 1 8 0 30\n", ""), ":2: expected the number of nodes, one less than the 3 "),
    (read_lattices, LATTICES + "\n1\n4\n0\n", ": expected 2 lattices, as its first line says, found 3"),
    (read_lattices, "2\n\n1\n4\n0\n", ": expected 2 lattices, as its first line says, found 1"),
    (read_lattices, b"1\n\xff\n", ":2: not UTF-8 text (byte 0 of the line)"),
    (read_programs, "\n", ': no programs in it; expected one per line, such as {"question": "How many?"'),
    (read_programs, "{", ":1: Input data was truncated; expected a question as JSON, found '{'"),
    (read_programs, "[" * 100_000, ":1: "),
    (read_programs, "[]", ":1: Expected `object`, got `array`; expected a question as JSON, found '[]'"),
    (read_programs, '\n{"program": []}', ":2: Expected `array` of length >= 1 - at `$.program`"),
    (read_programs, step("1"), ":1: Expected `object`, got `int` - at `$.program[1]`"),
    (read_programs, step('{"function": ""}'), ':1: step 1: expected a "function", of steps before it'),
    (read_programs, step('{"function": "f", "inputs": [1]}'), 'step 1: expected a "function", of steps before it'),
    (read_programs, step('{"function": "f", "inputs": [-1]}'), "step 1: expected"),
    (read_programs, step('{"function": "f", "inputs": [true]}'), ":1: Expected `int`, got `bool`"),
    (read_programs, step('{"function": "f", "inputs": "0"}'), ":1: Expected `array`, got `str`"),
    (read_programs, step('{"function": "f", "value_inputs": [1]}'), ":1: Expected `str`, got `int`"),
    (read_sentences, "\n", ": no sentences in it; expected one per line"),
    (read_sentences, b"a b\n\xff\nc d\n", ":2: not UTF-8 text"),
    (lambda path: read_pieces(path, 2), b"a b\n\xff\nc d\n", ":2: not UTF-8 text"),
    (lambda path: read_pieces(path, 1000), "a b\n", ": expected at least 1,000 words"),
]  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def written(content, name="file.txt"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return written


@pytest.mark.parametrize(("read", "content", "message"), BAD)
def test_what_is_malformed_is_told_by_place(write, read, content, message):
    path = write(content)
    with pytest.raises(EdBatchError, match=re.escape(message)) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:")


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("x\ny\nz\n", "u\nv\n", "a:3: expected its translation on the same line of {}/b, found none"),
        ("x", "u\nv\n", "b:2: expected its translation on the same line of {}/a, found none"),
        ("x\n \n", "u\nv\n", "b:2: expected its translation on the same line of {}/a"),
        ("x\ny\n", "\nv\n", "a:1: expected its translation on the same line of {}/b"),
        ("\n\n", "\n\n", "a: no sentences in it; expected one per line"),
    ],
)
def test_sentences_without_a_translation(write, tmp_path, a, b, message):
    with pytest.raises(EdBatchError, match=re.escape(message.format(tmp_path))):
        read_parallel(write(a, "a"), write(b, "b"))


@pytest.mark.parametrize("read", [read_trees, read_tagged, read_conllu, read_lattices, read_programs, read_sentences])
def test_what_cannot_be_read_or_written_is_no_malformed_line(tmp_path, read):
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(EdBatchError, match=re.escape(f"{path}: cannot be read")):
            read(path, skip_bad=True)
    with pytest.raises(EdBatchError, match=r"none/trees.txt: cannot be written"):
        write_trees(tmp_path / "none" / "trees.txt", [])


CONLLU = word() + "\nnot ten columns\n" + word() + "\n# a comment\n" + word() + word(2, head=1)


@pytest.mark.parametrize(
    ("read", "content", "kept", "said"),
    [
        (read_trees, b"(1 a)\nwrong\n(3 \xff)\n\n(2 b)\n", ["(1 a)", "(2 b)"], "2 malformed of 4 trees; the first: "),
        (read_tagged, "a|O b|I\na|O b\n", ["a|O b|I"], "1 malformed of 2 sentences; the first: {}:2: column 5: expec"),
        (lambda *x, **y: map(len, read_conllu(*x, **y)), CONLLU, ["1", "2"], "1 malformed of 3 sentences"),
        (
            read_sentences,
            b"a b\n\xff\nc\n",
            ["['a', 'b']", "['c']"],
            "1 malformed of 3 sentences; the first: {}:2: not",
        ),
        (lambda *x, **y: read_pieces(*x, 1, **y), b"a b\n\xff\n", ["['a']", "['b']"], "1 malformed of 2 sentences"),
    ],
)
def test_what_is_malformed_can_be_skipped(write, read, content, kept, said):
    path = write(content)
    with pytest.warns(EdBatchWarning, match=re.escape(f"skipped {said.format(path)}")):
        assert list(map(str, read(path, skip_bad=True))) == kept


@pytest.mark.parametrize("change", ["a letter", "a line less", "a line more", "cut off", "no number of nodes"])
def test_malformed_lattices_are_skipped_up_to_a_blank_line(tmp_path, change):
    path, made = tmp_path / "lattices.txt", random_lattices(4, seed=3)
    write_lattices(path, made)
    head, *texts = path.read_text().removesuffix("\n\n").split("\n\n")
    head, _, first = head.partition("\n")
    texts = [first, *texts]
    at = 3 if change == "cut off" else 1
    lattice = texts[at].split("\n")
    if change == "a letter":
        lattice[3] += " x"
    elif change == "a line more":
        lattice.append("1 0 7")
    else:
        del lattice[0 if change == "no number of nodes" else -1]
    texts[at] = "\n".join(lattice)
    path.write_text("\n".join([head, "\n\n".join(texts), ""]))
    with pytest.warns(EdBatchWarning, match=f"skipped 1 malformed of 4 lattices; the first: {re.escape(str(path))}:"):
        assert read_lattices(path, skip_bad=True) == [*made[:at], *made[at + 1 :]]


def test_the_first_samples(write):
    path = write("(1 a)\n\n(2 b)\r\n(3 c)\n(4")
    assert list(map(str, read_trees(path, limit=2))) == ["(1 a)", "(2 b)"]  # what is malformed comes later
    assert len(read_trees(path, limit=3)) == 3
    with pytest.raises(EdBatchError, match=r"file.txt:5: column 3: expected a word"):
        read_trees(path, limit=4)
