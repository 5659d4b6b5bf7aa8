"""What is wrong with a command is told in one line, and nothing is written; one table of all commands."""

import socket
import sys

import pytest

from edbatch.models.workloads import WORKLOADS

SCRIPT = "x = 1\ndef f(:\n"
SERVED = """
import edbatch as eb
value = 3
def words():
    return eb.ParameterCollection(), len
def number():
    return 5
def no_program():
    return eb.ParameterCollection(), 5
def fails():
    return [][1]
def ends():
    raise SystemExit(3)
def asks(name):
    return name
"""
FILES = {
    "trees.txt": "(3 (2 so) (4 good))\n",
    "broken.txt": "(3 good)\n(3 (2 so\n",
    "chain.txt": "4\n0 0\n1 1 0\n0 1 0\n1 1 2\n# type 0 I\n# type 1 O\n",
    "empty.txt": "0\n",
    "wrong.txt": "1\n0 1 5\n",
    "sentence.txt": "one sentence\n",
    "script.py": SCRIPT,
    "imports.py": "\n\nimport no_such_module_at_all\n",
    "broken.json": "{",
    "short": "short\n",
    "divides.py": "import edbatch\nvalue = 1 / 0\n",
    "other/vocabulary.json": '{"model": "tree-rnn", "hidden": 4, "known": {}}',
    "other/checkpoint.safetensors": "",
    "odd/vocabulary.json": '{"model": "tree-rnn", "hidden": "4", "known": {}}',
}
SAVED = "expected what edbatch train --save writes"
REPLACED = "expected another file to write than one that is read"
TRAINABLE = ", ".join(name for name in WORKLOADS if name != "tree-fc")
CASES = [
    ("demo --svg none/a.svg", "none/a.svg: cannot be written (there is no folder none)"),
    ("demo --svg a.png", "a.png: expected a name that ends with .svg"),
    ("run bert", "no model is named 'bert'; expected one of tree-lstm, "),
    ("run tree-lst", "no model is named 'tree-lst'; expected one of tree-lstm, "),
    ("run tree-lstm --data broken.txt", "broken.txt:2: column 7: expected a word and ')'"),
    ("run tree-lstm --data none.txt", "none.txt: cannot be read"),
    ("run tree-lstm --data trees.txt trees.txt", "expected files: 1 (trees), got 2"),
    ("run encoder-decoder --data trees.txt", "expected files: 2 (source sentences, "),
    ("run tagger --data trees.txt", "trees.txt:1: column 1: expected word|TAG, found "),
    ("run tree-lstm --policy fastest", "no policy is named 'fastest'"),
    ("run tree-lstm --device gpu", 'device \'gpu\': expected "cpu", "cuda" or "cuda:1"'),
    ("run tree-lstm --out none/out.txt", "none/out.txt: cannot be written (there is no folder none)"),
    ("run tree-lstm --data trees.txt --out trees.txt", f"trees.txt: {REPLACED}"),
    ("run tree-lstm --data trees.txt --out link", f"link: {REPLACED}"),
    ("run tree-lstm --load other", "other: holds a tree-rnn, not a tree-lstm"),
    ("run tree-rnn --load other --out other/vocabulary.json", f"other/vocabulary.json: {REPLACED}"),
    ("run tree-rnn --load other --out other/checkpoint.safetensors", f"other/checkpoint.safetensors: {REPLACED}"),
    ("run tree-rnn --load other --hidden 8", "--hidden: not allowed with --load, which determines it"),
    ("run tree-rnn --load none", "none/vocabulary.json: cannot be read"),
    ("run tree-rnn --load odd", f"odd/vocabulary.json: {SAVED}"),
    ("run tree-lstm --limit 0", "argument --limit: expected an integer from 1 on, got '0'"),
    ("run tree-lstm --batch-size 0", "argument --batch-size: expected an integer from 1 on, got '0'"),
    ("run tree-lstm --hidden 0", "argument --hidden: expected an integer from 1 on, got '0'"),
    ("train tree-fc", f"the data of tree-fc have no labels to learn from; expected one of {TRAINABLE}"),
    ("train bert", "no model is named 'bert'"),
    ("train tree-lstm --held-out trees.txt", "--held-out: give --data, too"),
    ("train tree-lstm --resume", "--resume: give --save FOLDER, the run's folder, too"),
    ("train tree-lstm --address 10.0.0.1:6379", "--address: give --workers, too"),
    ("train tree-lstm --data none.txt", "none.txt: cannot be read"),
    ("train tree-lstm --data trees.txt --held-out trees.txt trees.txt", "expected files: 1"),
    ("train module-network", "module-network: expected questions with labels to learn from, got none"),
    (
        "train language-model --data sentence.txt",
        "language-model: expected sentences with labels to learn from",
    ),
    ("train tree-lstm --limit 20 --lr -1", "Adam: lr=-1.0; expected"),
    ("learn none.txt -o p.json", "none.txt: cannot be read"),
    ("learn wrong.txt -o p.json", "wrong.txt:2: input 5 is not one of the nodes"),
    ("learn empty.txt -o p.json", "empty.txt: the graph has no nodes"),
    ("learn none.py:f -o p.json", "none.py:f: FileNotFoundError: "),
    ("learn script.py:f -o p.json", "script.py:2: SyntaxError"),
    ("learn imports.py:f -o p.json", "imports.py:3: ModuleNotFoundError"),
    ("learn script.py -o p.json", "script.py: expected FILE.py:FUNCTION or MODULE:FUNCTION"),
    ("learn chain.txt -o none/p.json", "none/p.json: cannot be written (there is no folder none)"),
    ("learn chain.txt -o other", "other: is a folder; expected a file to write"),
    ("learn chain.txt -o chain.txt", f"chain.txt: {REPLACED}"),
    ("learn chain.txt -o p.json --encoding best", "learn: no state encoding is named 'best'; there are "),
    ("learn chain.txt -o p.json --episodes=1.5", "argument --episodes: expected an integer from 0 on, got '1.5'"),
    ("schedule none.txt", "none.txt: cannot be read"),
    ("schedule chain.txt --policy fastest", "no policy is named 'fastest'"),
    ("schedule chain.txt --policy chain.txt", "chain.txt: not a policy file"),
    ("inspect none.json", "no policy is named"),
    ("inspect broken.json", "broken.json: not a policy file"),
    ("inspect agenda --svg machine.svg", "the rule 'agenda' has no states to draw"),
    ("inspect depth --svg a.svg", "the rule 'depth' has no states to draw"),
    ("serve words", "words: expected FILE.py:FUNCTION or MODULE:FUNCTION"),
    ("serve words:words", "words:words: ModuleNotFoundError: No module named 'words'"),
    ("serve served_words.py:fails", "served_words.py:11: IndexError: list index out of range"),
    (
        "serve served_words:nothing",
        "served_words:nothing: there is no function 'nothing'; there are ",
    ),
    ("serve served_words:value", "served_words:value: there is no function 'value'"),
    ("serve served_words:number", "served_words:number: expected it to return a model and a program, "),
    ("serve served_words:no_program", "served_words:no_program: expected it to return a model and a program, "),
    ("serve served_words:fails", "served_words.py:11: IndexError: list index out of range"),
    ("serve served_words:ends", "served_words.py:13: SystemExit: 3"),
    ("serve served_words:asks", "served_words:asks: TypeError: asks() missing 1 required positional argument"),
    ("serve divides:f", "divides.py:2: ZeroDivisionError: division by zero"),
    ("serve served_words:words --checkpoint none.safetensors", "none.safetensors"),
    ("serve served_words:words --policy unknown", "no policy is named 'unknown'"),
    ("serve served_words:words --deadline 0", "Batcher: deadline=0.0; expected seconds above 0"),
    ("serve served_words:words --token-file none", "none: cannot be read"),
    ("serve served_words:words --token-file trees.txt", "trees.txt: other users may read or write it (mode 644)"),
    ("serve served_words:words --token-file short", "short: expected one token, of 16 characters or more"),
    ("serve served_words:words --host no.such.host.invalid", "--host no.such.host.invalid --port 8000: cannot li"),
    ("serve served_words:words --port http", "argument --port: expected an integer from 0 on, got 'http'"),
    ("fly", "argument COMMAND: invalid choice: 'fly'"),
    ("learn", "the following arguments are required: SOURCE, -o/--output"),
    ("run", "the following arguments are required: MODEL"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with files."""
    for name, text in {**FILES, "served_words.py": SERVED}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644)
    (tmp_path / "short").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "trees.txt")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("served_words", "divides"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("argv", "message"), CASES)
def test_bad_input(edbatch, folder, argv, message):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    status, out, err = edbatch(*argv.split())
    assert (status, out) == (2, "")
    assert message in err
    assert err.splitlines()[-1].startswith("edbatch")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("module", "command", "extra"), [
    ("ray", "train tree-rnn --workers 2 --save run", "ray"),
    ("uvicorn", "serve served_words:words", "serve"),
])  # fmt: skip
def test_extras_that_are_missing(fails, folder, monkeypatch, module, command, extra):
    monkeypatch.delitem(sys.modules, "edbatch.serving.connection", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    assert f"pip install 'edbatch[{extra}]'" in fails(*command.split())
    assert not (folder / "run").exists()


def test_an_address_that_is_taken(fails, folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = fails("serve", "served_words:words", "--port", port)
    assert said.startswith(f"--host 127.0.0.1 --port {port}: cannot listen (")
