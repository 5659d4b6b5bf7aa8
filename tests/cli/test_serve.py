"""`edbatch serve MODULE:FUNCTION`: started as a command, asked over HTTP, ended by Ctrl-C."""

import re
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

import edbatch as eb
from edbatch.cli import main

MODULE = '''
import time

import edbatch as eb

def words():
    """A model, and a program that says words; each takes a while where it is asked to."""
    model = eb.ParameterCollection(seed=0)
    W, O = model.add_parameters((8, 8), name="W"), model.add_parameters((20, 8), name="O")

    async def program(sample):
        word, n, seconds = sample
        h, found = eb.ones(8) * (word / 10), []
        for _ in range(n):
            h = eb.tanh(W @ h)
            time.sleep(seconds)
            found.append(int((await (O @ h)).argmax()))
        return found

    return model, program

def number():
    return 5

def no_program():
    return eb.ParameterCollection(), 5

value = 3
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One with a module, which is the current folder."""
    name = f"served_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path, name
    sys.modules.pop(name, None)


class Serving:
    """The command in a process of its own, at a port that is free."""

    def __init__(self, folder, *arguments):
        command = [sys.executable, "-m", "edbatch", "serve", *arguments, "--port", "0"]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.lines = []

    def __enter__(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"running on (http://[\d.]+:\d+)", line):
                self.url = found[1]
                break
        else:
            pytest.fail("".join(self.lines))
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr))
        self._reader.start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()

    def ended(self):
        """The status, once it has ended, and all that it has said."""
        status = self.process.wait(timeout=30)
        self._reader.join()
        return status, "".join(self.lines)


def figures(serving):
    """Lines of what Prometheus reads."""
    return httpx.get(serving.url + "/metrics").text.splitlines()


def made(seed=None):
    """What the module makes, with parameters of another seed."""
    names = {}
    exec(MODULE, names)
    model, program = names["words"]()
    if seed is not None:
        others = eb.ParameterCollection(seed=seed)
        for parameter in model:
            parameter.set_value(others.add_parameters(parameter.shape).value())
    return model, program


@pytest.mark.cpu  # another process
def test_answers_those_of_the_checkpoint_and_ends_when_all_have_theirs(folder):
    path, name = folder
    model, program = made(seed=5)
    model.save(path / "m.safetensors")
    samples = [[word, 1 + word, 0] for word in range(8)]
    expected = eb.run(map(program, samples))
    assert expected != eb.run(map(made()[1], samples))
    late = [[word, 10, 0.02] for word in range(6)]  # take a second and more, as all sleep in one thread
    found = {}

    def client(word):
        found[word] = httpx.post(serving.url, json=late[word], timeout=60)

    with Serving(path, f"{name}:words", "--checkpoint", "m.safetensors", "--max-in-flight", "4") as serving:
        for sample, right in zip(samples, expected, strict=True):
            answer = httpx.post(serving.url, json=sample)
            assert (answer.status_code, answer.json()) == (200, right)
        assert httpx.get(serving.url + "/health").json() == {"status": "ok"}
        threads = [threading.Thread(target=client, args=(word,)) for word in range(6)]
        for thread in threads:
            thread.start()
        while not {"edbatch_in_flight 4.0", "edbatch_waiting 2.0"} <= set(figures(serving)):
            time.sleep(0.01)
        serving.process.send_signal(signal.SIGINT)
        status, said = serving.ended()
        for thread in threads:
            thread.join()
        with pytest.raises(httpx.ConnectError):
            httpx.get(serving.url + "/health")
    expected = eb.run([program([word, n, 0]) for word, n, _ in late])
    assert {word: answer.json() for word, answer in found.items()} == dict(enumerate(expected))
    assert status == 0, said
    assert "Traceback" not in said


def test_a_policy_beside_the_checkpoint_is_used_unless_another_is_named(folder, fails, monkeypatch):
    path, name = folder
    model, program = made()
    with eb.Graph() as graph:
        eb.run([program([1, 3, 0])])
    model.save(path / "m.safetensors", policy=eb.learn([graph.typed_graph()], episodes=5))

    def batcher(*_, policy, **__):
        raise RuntimeError(f"with {policy}")

    with monkeypatch.context() as patched:
        patched.setattr(eb.serving, "Batcher", batcher)
        for more, used in [([], "m.policy.json"), (["--policy", "agenda"], "agenda")]:
            with pytest.raises(RuntimeError, match=f"^with {used}$"):
                main(["serve", f"{name}:words", "--checkpoint", "m.safetensors", *more])
    (path / "m.policy.json").write_text("{")
    assert "m.policy.json" in fails("serve", f"{name}:words", "--checkpoint", "m.safetensors")


@pytest.mark.cpu
def test_an_address_that_is_taken(folder):
    path, name = folder
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "edbatch", "serve", f"{name}:words", "--port", port]
        done = subprocess.run(command, cwd=path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert f"'127.0.0.1', {port}" in done.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("words", "words: expected MODULE:FUNCTION"),
        (":words", ":words: expected MODULE:FUNCTION"),
        ("no_such_module:words", "no_such_module:words: No module named 'no_such_module'"),
        ("{}:nothing", "the module has no function 'nothing'"),
        ("{}:value", "the module has no function 'value'"),
        ("{}:number", "expected it to return a model and a program, got 5"),
        ("{}:no_program", "expected the program to be a function, got 5"),
    ],
)
def test_what_cannot_be_served(folder, fails, source, message):
    _, name = folder
    assert message in fails("serve", source.format(name))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--checkpoint", "none.safetensors"), "none.safetensors"),
        (("--policy", "unknown"), "unknown"),
        (("--deadline", "0"), "deadline=0.0; expected seconds above 0"),
    ],
)
def test_arguments(folder, fails, arguments, message):
    _, name = folder
    assert message in fails("serve", f"{name}:words", *arguments)


def test_without_the_extra(folder, fails, monkeypatch):
    _, name = folder
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'edbatch[serve]'" in fails("serve", f"{name}:words")
