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
from tests.serving.server import HEAD

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

def blocks():
    """A program that nothing can end; and one that goes on, but lets others run."""
    model = eb.ParameterCollection()

    async def program(sample):
        if sample == "blocks":
            time.sleep(1000)
        if sample == "long":
            return "x" * 50_000_000
        while True:
            await eb.scalar(1.0)

    return model, program
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
            if found := re.search(r"running on (http://127.0.0.1:(\d+))", line):
                self.url, self.port = found[1], int(found[2])
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
    return httpx.get(serving.url + "/metrics", timeout=60).text.splitlines()


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
            answer = httpx.post(serving.url, json=sample, timeout=60)  # code may have to be compiled
            assert (answer.status_code, answer.json()) == (200, right)
        assert httpx.get(serving.url + "/health", timeout=60).json() == {"status": "ok"}
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


def post(body, declared=None):
    """A request, or the beginning of one."""
    return HEAD + b"Content-Length: %d\r\n\r\n" % (declared or len(body)) + body


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("sent", "answer", "number"),
    [
        (b"", b"", signal.SIGINT),
        (b"POST / HT", b"", signal.SIGTERM),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 ", signal.SIGINT),
        (post(b'"half', 40), b"HTTP/1.1 503 ", signal.SIGTERM),
        (post(b'"goes on"'), b"HTTP/1.1 503 ", signal.SIGINT),
        (post(b'"blocks"'), b"HTTP/1.1 503 ", signal.SIGTERM),
        (post(b'"long"'), None, signal.SIGINT),  # which is not read
    ],
    ids=["nothing", "half a header", "idle", "half a body", "goes on", "blocks", "slow reader"],
)
def test_it_ends_within_its_grace(folder, sent, answer, number):
    path, name = folder
    with (
        Serving(path, f"{name}:blocks", "--grace", "1") as serving,
        socket.create_connection(("127.0.0.1", serving.port), timeout=20) as client,
    ):
        client.sendall(sent)
        assert httpx.get(serving.url + "/health", timeout=30).status_code == 200  # it has seen what was sent before
        begun = time.monotonic()
        serving.process.send_signal(number)
        status, said = serving.ended()
        assert time.monotonic() - begun < 15  # 1 s of grace, 5 for what blocks, and a busy machine
        if answer is not None:
            assert client.recv(1000)[: len(answer)] == answer
    assert status == (0 if number == signal.SIGINT else -signal.SIGTERM), said
    assert "Traceback" not in said


@pytest.mark.cpu
def test_a_token_and_its_file(folder, fails):
    path, name = folder
    (path / "token").write_text("0123456789abcdef\n")
    (path / "token").chmod(0o644)
    said = fails("serve", f"{name}:words", "--token-file", "token")
    assert said == "token: other users may read or write it (mode 644); run `chmod 600` on it"
    (path / "token").chmod(0o600)
    with Serving(path, f"{name}:words", "--token-file", "token", "--allow-host", "parser.example") as serving:
        assert httpx.get(serving.url + "/health", timeout=60).status_code == 200
        assert httpx.post(serving.url, json=[1, 1, 0], timeout=60).status_code == 401
        headers = {"Authorization": "Bearer 0123456789abcdef"}
        assert httpx.post(serving.url, json=[1, 1, 0], headers=headers, timeout=60).status_code == 200
        for host, status in [("parser.example", 200), ("evil.example", 421)]:
            answer = httpx.post(serving.url, json=[1, 1, 0], headers=headers | {"Host": host}, timeout=60)
            assert answer.status_code == status


@pytest.mark.cpu
def test_it_ends_itself_when_nobody_is_answered_any_more(folder):
    path, name = folder
    with (
        Serving(path, f"{name}:blocks", "--stall-seconds", "1", "--exit-when-stalled") as serving,
        socket.create_connection(("127.0.0.1", serving.port), timeout=60) as client,
    ):
        client.sendall(post(b'"blocks"'))
        assert serving.process.wait(timeout=60) == 70
        _, said = serving.ended()
    assert re.search(r"CRITICAL edbatch.serving: no round has ended for \d+\.\d s; this process ends\n", said)


def test_without_the_extra(folder, fails, monkeypatch):
    _, name = folder
    monkeypatch.delitem(sys.modules, "edbatch.serving.connection", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'edbatch[serve]'" in fails("serve", f"{name}:words")
