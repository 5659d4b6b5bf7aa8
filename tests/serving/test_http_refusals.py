"""What is wrong with a request, or with its answer, is told in one line of JSON; the next one is answered."""

import gzip
import json
import math
import socket
import time
from http.client import HTTPResponse

import httpx
import numpy as np
import pytest

import edbatch as eb
from tests.serving.server import HEAD, JSON, Server, post

LIMIT = 100_000


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no text")


class Holding:
    """An answer that fails as it is looked at."""

    @property
    def __dict__(self):
        raise OSError("no fields")


def cycle():
    found = []
    found.append(found)
    return found


ANSWERS = {
    "nan": lambda: {"a": [None, "null", 1.5], "b": [1, {"c": math.nan}]},
    "infinity": lambda: (1, np.array([[1, 2], [3, -np.inf]])),
    "alone": lambda: np.float32("nan"),
    "none": lambda: {"a": None, "b": "null"},
    "object": object,
    "complex": lambda: 1j,
    "surrogate": lambda: "\ud800",
    "cycle": cycle,
    "expression": lambda: {"x": [eb.ones(3)]},
    "array": lambda: [eb.array([eb.scalar(1)])],
    "large": lambda: 10**400,
    "fields": Holding,
}
ERRORS = {
    "broken": RuntimeError("it is broken"),
    "bad": ValueError("it is bad"),
    "unspeakable": Unspeakable(),
    "lines": ValueError("one\r\nX: two"),
    "undecoded": ValueError("a file called \udcff"),
}


async def program(sample):
    if isinstance(sample, str):
        await eb.scalar(1.0)
        if sample in ERRORS:
            raise ERRORS[sample]
        return ANSWERS[sample]()
    if isinstance(sample, dict):
        end = time.monotonic() + sample["seconds"]
        while time.monotonic() < end:
            await eb.scalar(1.0)
        return "slow"
    return float(await (eb.scalar(sample[0]) * 2))


@pytest.fixture(scope="module")
def server():
    with Server(program, {"debug": True}, size=LIMIT) as one:
        yield one


@pytest.fixture
def refused(server):
    """Ask for something that is refused: its status, what is said, and its headers; then another is answered."""

    def ask(*, method="POST", path="/", headers=JSON, **request):
        with httpx.Client(timeout=60) as client:
            answer = client.request(method, server.url + path, headers=headers, **request)
            assert answer.headers["content-type"] == "application/json"
            said = answer.json()
            assert {"error"} <= set(said) <= {"error", "id"}
            assert client.post(server.url, json=[3]).json() == 6
        return answer.status_code, said["error"], answer.headers

    return ask


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "expected JSON, got an empty body"),
        (b" \r\n", "expected JSON, got an empty body"),
        (b"[3, 5", "expected JSON: "),
        (b"a=3&b=5", "expected JSON: "),
        (b"\xff\xfe", "expected JSON: "),
        (b'"\xff\xfe"', "expected JSON: 'utf-8' codec can't decode byte 0xff"),
        (b'{"\xe9t\xe9": 1}', "expected JSON: 'utf-8' codec can't decode byte 0xe9"),
        (json.dumps("word").encode("utf-16"), "expected JSON: "),
        (b"\xef\xbb\xbf[3]", "expected JSON: "),
        (b'"\\ud800"', "expected JSON: "),
        (b"[" * 40_000 + b"]" * 40_000, "expected JSON of 200 levels at most (see --depth-limit), got 40000"),
        (
            b'{"a":' * 15_000 + b"1" + b"}" * 15_000,
            "expected JSON of 200 levels at most",
        ),
        (b"[" * 40_000, "expected JSON of 200 levels at most (see --depth-limit), got 40000"),
        (b'[{"[[{\\\\\\"[": ' + b"[" * 199 + b"]" * 199 + b"}]", "expected JSON of 200 levels at most"),
        (b'"' + b'\\"' * 40_000 + b"[" * 300, "expected JSON: Input data was truncated"),
        (b"NaN", "expected JSON: "),
        (b"1e999", "expected JSON: Number out of range"),
        (b"9" * 5000, "expected JSON: Integer value out of range"),
        (b"[3] [4]", "expected JSON: JSON is malformed: trailing characters"),
        (b'"bad"', "ValueError: it is bad"),
        (b'"lines"', "ValueError: one\r\nX: two"),
        (b'"undecoded"', "ValueError: a file called ?"),
        (b"[[1, [2]]]", "EdBatchError: "),
    ],
)
def test_samples_that_are_none(refused, body, message):
    status, said, _ = refused(content=body)
    assert status == 400
    assert said.startswith(message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nan", "the program returned nan at ['b'][1]['c']; expected finite numbers"),
        ("infinity", "the program returned -inf at [1][1][1]; expected finite numbers"),
        ("alone", "the program returned nan; expected finite numbers"),
        (
            "object",
            "the program returned a value of class object; expected numbers, texts, lists",
        ),
        (
            "complex",
            "the program returned a value of class complex; expected numbers, texts, lists",
        ),
        ("surrogate", "the program returned a value that JSON cannot represent: 'utf-8' codec can't encode"),
        ("cycle", "the program returned a value that is nested too deeply for JSON, or contains itself"),
        (
            "expression",
            "the program returned an expression; expected values: return `await x`",
        ),
        ("array", "the program returned an expression"),
        ("fields", "the program returned a value"),
        ("broken", "RuntimeError: it is broken"),
        ("unspeakable", "Unspeakable: it has no text"),
        ("no such name", "KeyError: 'no such name'"),
    ],
)
def test_answers_that_are_none(refused, name, message):
    status, said, _ = refused(json=name)
    assert status == 500
    assert said.removeprefix("BatcherError: ").startswith(message)


def test_what_is_null_and_what_is_long_is_answered(server):
    assert post(server.url, json="none").json() == ANSWERS["none"]()
    assert post(server.url, json="large").json() == 10**400


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/nothing", 404, "/nothing: there is only /, /health and /metrics"),
        ("POST", "/nothing", 404, "/nothing: there is only /, /health and /metrics"),
        ("GET", "/health/h%C3%A9", 404, "/health/h\u00e9: there is only /, /health and /metrics"),
        ("PUT", "/", 405, "PUT: expected GET, HEAD, POST"),
        ("DELETE", "/", 405, "DELETE: expected GET, HEAD, POST"),
        ("POST", "/health", 405, "POST: expected GET, HEAD"),
        ("PUT", "/metrics", 405, "PUT: expected GET, HEAD"),
    ],
)
def test_addresses_and_methods(refused, method, path, status, message):
    found, said, headers = refused(method=method, path=path, content=b"[3]")
    assert (found, said) == (status, message)
    if status == 405:
        assert headers["allow"] in message


def test_what_is_compressed(refused):
    status, said, headers = refused(content=gzip.compress(b"[3]"), headers=JSON | {"Content-Encoding": "gzip"})
    assert (status, said) == (415, "Content-Encoding: gzip; expected none")
    assert headers["accept-encoding"] == "identity"


def test_what_is_too_large(refused):
    message = "expected at most 100,000 bytes"
    assert refused(content=b"[3]" + b" " * LIMIT)[:2] == (413, message)
    assert refused(content=(b" " * 10_000 for _ in range(100)))[:2] == (413, message)


@pytest.fixture
def said(server):
    """What a server says to some bytes, until it says no more."""

    def ask(sent, port=server.port):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(sent)
            found = b""
            while part := connection.recv(1000):
                found += part
        return found.decode()

    return ask


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: five\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n3",
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n3",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n3",
        HEAD + b"Transfer-Encoding : chunked\r\n\r\n3",
        HEAD + b"Host: localhost\r\n\r\n3",
    ],
)
def test_what_is_no_http_or_may_be_read_in_two_ways_is_refused(server, said, sent):
    try:
        assert said(sent).startswith("HTTP/1.1 400 ")
    except ConnectionResetError:  # it does not read all of a header that is too large
        assert len(sent) > 100_000
    assert post(server.url, json=[3]).json() == 6


HALF = HEAD + b'Content-Length: 40\r\n\r\n{"seconds": '


@pytest.mark.parametrize("settings", [{"deadline": 0.3}, {"body_seconds": 0.3}, {"deadline": 60, "body_seconds": 0.3}])
def test_half_a_body_is_waited_for_as_long_as_a_request_may_take(said, settings):
    with Server(program, **settings) as server:
        begun = time.monotonic()
        found = said(HALF, server.port)
        assert 0.3 <= time.monotonic() - begun < 15
        assert found.startswith("HTTP/1.1 408 ")
        assert found.endswith('{"error":"expected the whole body within 0.3 s"}')
        while (answer := post(server.url, json=[3])).status_code == 504:  # a busy machine may take as long as that
            pass
        assert answer.json() == 6


def test_the_deadline_counts_from_when_a_request_began_to_come():
    """A body that takes 2 s leaves 2 s of four to the program, which takes 2.5 s, and could else be answered."""
    body = b'{"seconds": 2.5}'
    with Server(program, deadline=4.0) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            begun = time.monotonic()
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
            time.sleep(2.0)
            connection.sendall(body[5:])
            found = HTTPResponse(connection)
            found.begin()
            assert time.monotonic() - begun >= 4.0
            assert found.status == 504
            assert b'"not answered in 4 s; ' in found.read()  # which may come later than the header
        assert (server.batcher.counters.expired, server.batcher.counters.answered) == (1, 0)
