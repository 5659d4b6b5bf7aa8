"""CoNLL-U files, and made-up trees."""

import pytest

from edbatch.data.dependencies import DependencySentence, random_dependencies, read_conllu, write_conllu
from edbatch.errors import EdBatchError

FILE = """\
# sent_id = 1
# text = They don't sing.
1\tThey\tthey\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tsing\tsing\tVERB\tVB\t_\t0\troot\t_\t_
4.1\tsing\tsing\tVERB\tVB\t_\t_\t_\t_\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
"""


def test_a_file_of_universal_dependencies(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(FILE)
    assert read_conllu(path) == [
        DependencySentence(["They", "do", "n't", "sing"], [4, 4, 4, 0], ["nsubj", "aux", "advmod", "root"]),
        DependencySentence(["Yes"], [0], ["root"]),
    ]


def line(number=1, word="a", head=0, columns=10):
    return "\t".join([str(number), word, *["_"] * 4, str(head), "r", *["_"] * (columns - 8)]) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no sentences in it"),
        ("# nothing\n\n\n", "no sentences in it"),
        ("one two three\n", ":1: expected 10 columns between tabs, found 'one two three'"),
        (line(columns=9), ":1: expected 10 columns"),
        (line() + line(3), ":2: expected word 2 with the number of its head"),
        (line(head="_"), ":1: expected word 1 with the number"),
        (line(word=""), ":1: expected word 1"),
        (line(head=-1), ":1: expected word 1"),
        (line(head=1), ":1: expected a tree, but the heads of word 1 do not lead to the root"),
        (line() + line(2, head=4) + line(3, head=2) + line(4, head=3), ":2: expected a tree, but the heads of word 2"),
        (line() + line(2, head=7), ":2: expected a tree"),
        (line("2-3"), ":1: expected a word with a number"),
        ("\n" + line() + "\n" + line(head=1), ":4: expected a tree"),
    ],
)
def test_bad_files_are_told_by_line(tmp_path, text, message):
    path = tmp_path / "trees.conllu"
    path.write_text(text)
    with pytest.raises(EdBatchError, match=message):
        read_conllu(path)


def test_a_long_chain_is_checked_in_linear_time(tmp_path):
    n = 20_000
    path = tmp_path / "trees.conllu"
    write_conllu(path, [DependencySentence(["a"] * n, [*range(2, n + 1), 0], ["r"] * n)])
    assert len(read_conllu(path)[0]) == n


def test_what_is_made_up_is_a_projective_tree_and_comes_back(tmp_path):
    sentences = random_dependencies(200, seed=5)
    assert sentences[:20] == random_dependencies(20, seed=5) != random_dependencies(20, seed=6)
    assert all(sentence.is_projective and sentence.heads.count(0) == 1 for sentence in sentences)
    assert all(len(sentence.relations) == len(sentence.heads) == len(sentence) for sentence in sentences)
    path = tmp_path / "trees.conllu"
    write_conllu(path, sentences)
    assert read_conllu(path) == sentences
