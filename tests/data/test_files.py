"""Files of every kind: what is written is read again, and files of others are read as they mean it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edbatch.data.dependencies import DependencySentence, read_conllu, write_conllu
from edbatch.data.lattices import Arc, Lattice, read_lattices, sizes, write_lattices
from edbatch.data.parallel import read_parallel
from edbatch.data.programs import Program, Step, parse_program, read_programs, write_programs
from edbatch.data.sentences import read_sentences, write_sentences
from edbatch.data.tagged import TaggedSentence, read_tagged, write_tagged
from edbatch.data.trees import read_trees

WORDS = st.text(st.characters(exclude_characters=" \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1)
SENTENCES = st.lists(WORDS, min_size=1, max_size=5)
TAGS = st.text(st.characters(exclude_characters="| \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1)
IDS = st.integers(0, 10**9 - 1)


@st.composite
def lattices(draw):
    tags = draw(st.lists(IDS, min_size=1, max_size=6))
    arcs = [()]
    for node in range(1, len(tags)):
        to_node = draw(st.lists(st.tuples(st.integers(0, node - 1), IDS), min_size=1, max_size=4))
        arcs.append(tuple(Arc(*arc) for arc in to_node))
    return Lattice(tags, arcs)


@st.composite
def programs(draw):
    before = [draw(st.lists(st.integers(0, at - 1), max_size=2)) if at else [] for at in range(draw(st.integers(1, 5)))]
    steps = [Step(draw(WORDS), tuple(inputs), tuple(draw(SENTENCES))) for inputs in before]
    return Program(draw(st.text()), steps, draw(st.none() | st.text()))


KINDS = {
    "tagged": (
        st.lists(st.tuples(WORDS, TAGS), min_size=1).map(
            lambda pairs: TaggedSentence([word for word, _ in pairs], [tag for _, tag in pairs])
        ),
        write_tagged,
        read_tagged,
    ),
    "dependencies": (
        st.lists(st.text("abé|", min_size=1), min_size=1, max_size=5).map(
            lambda words: DependencySentence(words, [*range(2, len(words) + 1), 0], ["r"] * len(words))
        ),
        write_conllu,
        read_conllu,
    ),
    "lattices": (lattices(), write_lattices, read_lattices),
    "programs": (programs(), write_programs, read_programs),
    "sentences": (SENTENCES, write_sentences, read_sentences),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_what_is_written_is_read_again(tmp_path_factory, kind, data):
    strategy, write, read = KINDS[kind]
    made = data.draw(st.lists(strategy, min_size=1, max_size=4))
    path = tmp_path_factory.mktemp(kind) / "file.txt"
    write(path, made)
    assert read(path) == made


def test_blank_lines_and_kinds_of_blanks(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("x y\r\n\nz\u00a0z")
    b.write_text("u\n \nv w\n")
    assert read_parallel(a, b) == [(["x", "y"], ["u"]), (["z\u00a0z"], ["v", "w"])]
    assert read_sentences(a) == [["x", "y"], ["z\u00a0z"]]
    a.write_text("a|O b|I-X\r\n\n  \nc||O\n")
    assert read_tagged(a) == [TaggedSentence(["a", "b"], ["O", "I-X"]), TaggedSentence(["c|"], ["O"])]


def test_a_file_of_universal_dependencies(tmp_path):
    (tmp_path / "trees.conllu").write_text(
        "# sent_id = 1\n"
        "1\tThey\tthey\tPRON\tPRP\t_\t4\tnsubj\t_\t_\n"
        "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_\n"
        "3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_\n"
        "4\tsing\tsing\tVERB\tVB\t_\t0\troot\t_\t_\n"
        "4.1\tsing\tsing\tVERB\tVB\t_\t_\t_\t_\t_\n"
        "\n"
        "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n"
    )
    assert read_conllu(tmp_path / "trees.conllu") == [
        DependencySentence(["They", "do", "n't", "sing"], [4, 4, 4, 0], ["nsubj", "aux", "advmod", "root"]),
        DependencySentence(["Yes"], [0], ["root"]),
    ]


def test_a_long_chain_of_heads_is_checked_in_linear_time(tmp_path):
    n = 20_000
    write_conllu(tmp_path / "a", [DependencySentence(["a"] * n, [*range(2, n + 1), 0], ["r"] * n)])
    assert len(read_conllu(tmp_path / "a")[0]) == n


def test_a_question_of_the_public_format():
    text = """{"image_index": 0, "answer": 2, "question": "Are there more?", "program": [
        {"inputs": [], "function": "scene", "value_inputs": [], "_output": [1, 2]},
        {"inputs": [0], "type": "filter_size", "value_inputs": ["large"]},
        {"inputs": [0, 1], "function": "union"}]}"""
    program = parse_program(text)
    assert (program.question, program.answer) == ("Are there more?", "2")
    assert [step.module for step in program.steps] == ["scene", "filter_size[large]", "union"]
    assert [step.inputs for step in program.steps] == [(), (0,), (0, 1)]


def test_real_files(data_folder):
    train = read_lattices(data_folder / "lattice" / "train.txt")
    dev = read_lattices(data_folder / "lattice" / "dev.txt")
    assert (len(train), len(dev), sum(map(len, train))) == (1147, 113, 50618)
    assert sizes(train + dev) == (2256, 10966, 18)
    programs = read_programs(data_folder / "clevr" / "train.jsonl")
    assert (len(programs), sum(map(len, programs))) == (673, 3912)
    pairs = read_parallel(data_folder / "iwslt15" / "tst2012.en", data_folder / "iwslt15" / "tst2012.vi")
    assert (len(pairs), sum(len(pair.target) for pair in pairs)) == (1553, 34297)
    sentences = read_tagged(data_folder / "wikiner" / "train.txt")
    assert (len(sentences), sum(map(len, sentences))) == (1300, 30603)
    assert len(read_trees(data_folder / "sst" / "train.txt")) == 8544
