"""`edbatch learn`: from recorded graphs and from scripts; what goes wrong names its place."""

import pytest

import edbatch as eb

SCRIPT = """\
from dataclasses import dataclass
import edbatch as eb
import beside

model = eb.ParameterCollection()
W = model.add_parameters((4, 4), name="W")

@dataclass
class Chain:
    length: int

def batches():
    print("building")
    for longest in (2, 3):
        for chain in map(Chain, range(1, longest + 1)):
            h = eb.zeros(beside.SIZE)
            for _ in range(chain.length):
                h = eb.tanh(W @ h)
        yield

def plain():
    return 1

def programs():
    async def chain(length):
        h = eb.zeros(beside.SIZE)
        while length > 0:
            h = eb.tanh(W @ h)
            length -= 1 + int((await h)[0])
    eb.run([chain(length) for length in (2, 3)])
    yield

def empty():
    yield

def second_empty():
    eb.tanh(W @ eb.zeros(4))
    yield
    yield

def never():
    eb.tanh(W @ eb.zeros(4))
    if not model:
        yield

def needy(size):
    yield size

def wrong_shape():
    W @ eb.zeros(5)
    yield

def divides():
    helper()
    yield

def helper():
    1 / 0

def leaves():
    raise SystemExit("bye")
    yield

def late():
    eb.tanh(eb.scalar(1.0))
    yield
    eb.tanh(eb.scalar(2.0))

async def asynchronous():
    yield

number = 7

if __name__ == "__main__":
    raise RuntimeError("the script was run")
"""


def line_of(text):
    return SCRIPT[: SCRIPT.index(text)].count("\n") + 1


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.py").write_text("SIZE = 4\n")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_learns_from_a_recorded_graph(edbatch, chain, tmp_path):
    policy = tmp_path / "policy.json"
    status, out, err = edbatch("learn", chain, "-o", policy)
    assert (status, err) == (0, "")
    first, second, *rest = out.splitlines()
    assert first == "fsm-sort: 1 state over 2 types"
    assert second.startswith("trained on 1 graph: ")
    assert rest == ["reached 3 batches; lower bound 3, best heuristic 3 (critical-path)", f"wrote {policy}"]
    assert eb.get_policy(policy).name == "fsm-sort"


def test_learns_from_a_script(edbatch, script, tmp_path):
    policy = tmp_path / "policy.json"
    status, out, err = edbatch("learn", f"{script}:batches", "-o", policy)
    assert (status, err) == (0, "building\n")
    assert "trained on 2 graphs: " in out
    assert eb.get_policy(policy).name == "fsm-sort"


def test_learns_from_rounds_of_programs(edbatch, script, tmp_path):
    """Each of the three rounds was scheduled alone, so that no policy could have run the chains' steps together."""
    assert edbatch("learn", f"{script}:programs", "-o", tmp_path / "policy.json")[0] == 0
    training = eb.get_policy(tmp_path / "policy.json").training
    assert training.graphs == 3
    assert training.batches == training.bounds


@pytest.mark.parametrize(
    ("function", "line", "message"),
    [
        ("nowhere", None, "there is no function 'nowhere'; there are "),
        ("number", None, "there is no function 'number'; there are "),
        ("plain", None, "expected a generator function; it must yield after each mini-batch"),
        ("asynchronous", None, "expected a generator function"),
        ("empty", "    yield\n\ndef second", "mini-batch 0 is empty; build its expressions before this yield"),
        ("second_empty", "    yield\n\ndef never", "mini-batch 1 is empty"),
        ("late", None, "records after its last yield (1 nodes); expected one after each mini-batch"),
        ("never", None, "ended without a yield; expected one after each mini-batch"),
        ("needy", None, "TypeError: needy() missing 1 required positional argument: 'size'"),
        ("wrong_shape", "    W @ eb.zeros(5)", "matmul(W[4,4], [5])"),
        ("divides", "    1 / 0", "ZeroDivisionError: division by zero"),
        ("leaves", "    raise SystemExit", "SystemExit: bye"),
    ],
)
def test_errors_name_the_line_of_the_script(edbatch, script, tmp_path, function, line, message):
    policy = tmp_path / "policy.json"
    policy.write_text("old")
    status, out, err = edbatch("learn", f"{script}:{function}", "-o", policy)
    assert (status, out) == (2, "")
    place = f"{script}:{function}" if line is None else f"{script}:{line_of(line)}"
    assert f"edbatch: error: {place}: {message}" in err
    assert policy.read_text() == "old"
    assert sorted(path.name for path in tmp_path.glob("*.json*")) == ["policy.json"]
