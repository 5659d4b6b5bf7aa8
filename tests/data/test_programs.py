"""Programs as JSON, made-up ones, and the sample files of every kind."""

import re

import pytest

from edbatch import EdBatchError
from edbatch.data.dependencies import random_dependencies, read_conllu
from edbatch.data.lattices import read_lattices
from edbatch.data.parallel import random_parallel, read_parallel
from edbatch.data.programs import Step, parse_program, read_programs, stream_programs, write_programs
from edbatch.data.random_lattices import random_lattices
from edbatch.data.random_programs import ATTRIBUTES, random_programs
from edbatch.data.sample_files import sample_path
from edbatch.data.tagged import random_tagged, read_tagged

RANDOM = random_programs(1000, seed=1)


def test_a_question_of_the_public_format():
    text = """{"image_index": 0, "answer": 2, "question": "Are there more?", "program": [
        {"inputs": [], "function": "scene", "value_inputs": [], "_output": [1, 2]},
        {"inputs": [0], "type": "filter_size", "value_inputs": ["large"]},
        {"inputs": [0, 1], "function": "union"}]}"""
    program = parse_program(text)
    assert (program.question, program.answer) == ("Are there more?", "2")
    assert program.steps == [
        Step("scene", (), ()), Step("filter_size", (0,), ("large",)), Step("union", (0, 1), ()),
    ]  # fmt: skip
    assert parse_program(str(program)) == program
    assert [step.module for step in program.steps] == ["scene", "filter_size[large]", "union"]


def step(text):
    return f'{{"program": [{{"function": "scene"}}, {text}]}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "column 2: expected a question as JSON, found '{'"),
        ("[" * 100_000, "expected a question as JSON"),
        ("[]", "expected an object with \"program\", a list of steps, found '[]'"),
        ('{"program": []}', 'expected an object with "program"'),
        (step("1"), 'step 1: expected an object with "function", a name, found 1'),
        (step('{"function": ""}'), "step 1: expected an object"),
        (step('{"function": "f", "inputs": [1]}'), 'step 1: expected "inputs" among the steps before it, found [1]'),
        (step('{"function": "f", "inputs": [-1]}'), "step 1: expected"),
        (step('{"function": "f", "inputs": [true]}'), "step 1: expected"),
        (step('{"function": "f", "inputs": "0"}'), "step 1: expected"),
        (step('{"function": "f", "value_inputs": [1]}'), 'step 1: expected "value_inputs", a list of words, found [1]'),
    ],
)
def test_errors_name_file_line_and_step(tmp_path, text, message):
    path = tmp_path / "programs.jsonl"
    good = str(RANDOM[0])
    path.write_text(f"{good}\n\n{text}\n{good}\n")
    with pytest.raises(EdBatchError, match=re.escape(message)) as error:
        read_programs(path)
    assert str(error.value).startswith(f"{path}:3: ")
    programs = stream_programs(path, skip_bad=True)
    assert (list(programs), programs.skipped) == ([RANDOM[0]] * 2, 1)


def test_made_up_programs_come_back(tmp_path):
    assert RANDOM[:20] == random_programs(20, seed=1) != random_programs(20, seed=2)
    path = tmp_path / "programs.jsonl"
    write_programs(path, RANDOM)
    assert read_programs(path) == RANDOM


def test_made_up_programs_are_like_real_ones():
    sizes = sorted(map(len, RANDOM))
    assert 5.4 < sum(sizes) / len(sizes) < 6.2  # real ones: 5.8
    assert (sizes[100], sizes[250], sizes[-1] < 16) == (3, 4, True)
    for program in RANDOM:
        used = [at for step in program.steps for at in step.inputs]
        assert sorted(set(used)) == list(range(len(program) - 1))  # everything is for the answer
        assert all(step.values[0] in ATTRIBUTES[step.function[7:]] for step in program.steps if "filter" in step[0])


def test_real_programs(data_folder):
    programs = read_programs(data_folder / "clevr" / "train.jsonl")
    assert (len(programs), sum(map(len, programs))) == (673, 3912)


def test_sample_files_are_what_the_generators_give():
    assert read_tagged(sample_path("tagged.txt")) == random_tagged(50, seed=0)
    assert read_conllu(sample_path("dependencies.conllu")) == random_dependencies(50, seed=0)
    assert read_lattices(sample_path("lattices.txt")) == random_lattices(50, seed=0)
    assert read_parallel(sample_path("source.txt"), sample_path("target.txt")) == random_parallel(50, seed=0)
    assert read_programs(sample_path("programs.jsonl")) == random_programs(50, seed=0)
    with pytest.raises(EdBatchError, match=r"no sample file is named 'x'; expected one of dependencies.conllu, "):
        sample_path("x")
