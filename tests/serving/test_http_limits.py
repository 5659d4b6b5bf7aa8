"""What clients may take of a server, who may ask it, and what they are told: attacks on the loopback interface."""

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack, closing

import httpx
import pytest

import edbatch as eb
from tests.serving.server import HEAD, JSON, Server, get, post
from tests.serving.test_batcher import large

SECONDS = 60  # in which all has to happen


async def program(sample):
    """Twice a number; what a text asks for."""
    if sample == "long":
        return "x" * 30_000_000
    if sample == "large":
        return await large()
    if sample == "memory":
        raise MemoryError("of its own")
    if sample == "computed":
        raise eb.EdBatchError("a path in an EdBatchError")
    if sample == "value":
        raise ValueError("a path in a ValueError")
    if sample == "other":
        raise OSError("a path in an OSError")
    if sample == "request":
        raise eb.serving.RequestError("there is no such word")
    if sample == "expression":
        return eb.scalar(1.0)
    if sample == "slow":
        while True:
            await eb.scalar(1.0)
    return float(await (eb.scalar(sample) * 2))


@pytest.fixture(scope="module")
def server():
    with Server(program) as one:
        yield one


def connected(server):
    return closing(socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS))


def received(connection):
    """All that a server sends until it closes."""
    found = b""
    try:
        while part := connection.recv(1 << 16):
            found += part
    except ConnectionResetError:  # it has closed before it read all that was sent
        pass
    return found


def said(server, sent):
    with connected(server) as connection:
        connection.sendall(sent)
        return received(connection)


@pytest.mark.cpu  # whose memory it is
@pytest.mark.parametrize(
    ("sample", "status", "error"),
    [
        ("request", 400, "there is no such word"),
        ("value", 400, "the sample was refused"),
        ("computed", 400, "the sample was refused"),
        ("large", 413, "there is no memory for this sample"),
        ("memory", 413, "there is no memory for this sample"),
        ("expression", 500, "no answer could be made"),
        ("other", 500, "no answer could be made"),
    ],
)
def test_what_programs_raise_is_in_the_log_only(server, caplog, sample, status, error):
    answer = post(server.url, json=sample)
    assert answer.status_code == status
    found = answer.json()
    assert found.pop("error") == error
    assert [record.getMessage().partition(":")[0] for record in caplog.records if record.name == "edbatch.serving"] == (
        [found["id"]] if sample != "request" else []
    )


def test_a_closed_batcher_is_nobody_s_fault():
    with Server(program) as server:
        asyncio.run(server.batcher.close())
        assert post(server.url, json=3).status_code == 500
        health = get(server.url + "/health")
    assert (health.status_code, health.json()) == (503, {"error": "the batcher has ended"})


def test_health_says_that_nobody_is_answered():
    over = threading.Event()

    async def blocks(sample):
        over.wait(SECONDS)
        return sample

    with Server(blocks, stall_seconds=0.2) as server:
        assert get(server.url + "/health").status_code == 200
        thread = threading.Thread(target=post, args=(server.url,), kwargs={"json": 3})
        thread.start()
        end = time.monotonic() + SECONDS
        while (health := get(server.url + "/health")).status_code == 200:
            assert time.monotonic() < end
        assert health.json()["error"].startswith("no round has ended for ")
        over.set()
        thread.join(SECONDS)
        while get(server.url + "/health").status_code == 503:
            assert time.monotonic() < end


@pytest.mark.parametrize("sent", [b"", b"POST / HT", HEAD, HEAD + b"X: " + b"a" * 100])
def test_a_header_has_its_time(sent):
    with Server(program, header_seconds=1) as server:
        found = said(server, sent)
        assert found.startswith(b"HTTP/1.1 408 ")
        assert found.endswith(b'{"error":"the header took too long"}')


def test_the_next_header_has_its_time_too():
    """Of a connection that is kept."""
    with Server(program, header_seconds=1) as server:
        found = said(server, HEAD + b"Content-Length: 1\r\n\r\n3" + b"POST / H")
        assert found.startswith(b"HTTP/1.1 200 ")
        assert b"\r\n\r\n6.0" in found


def test_an_answer_that_is_not_taken_is_given_up():
    with Server(program, body_seconds=1) as server, connected(server) as connection:
        connection.sendall(HEAD + b'Content-Length: 6\r\n\r\n"long"')
        end = time.monotonic() + SECONDS
        while server.connections < 1 or server.batcher.counters.answered < 1:
            assert time.monotonic() < end
            time.sleep(0.01)
        while server.connections:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_connections_have_a_limit():
    with Server(program, connections=5) as server, ExitStack() as opened:
        half = [opened.enter_context(connected(server)) for _ in range(5)]
        for one in half:
            one.sendall(b"POST / HT")
        end = time.monotonic() + SECONDS
        while server.connections < 5:
            assert time.monotonic() < end
            time.sleep(0.01)
        for _ in range(20):
            assert said(server, b"").startswith(b"HTTP/1.1 503 ")
        half.pop().close()
        while server.connections == 5:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert post(server.url, json=3).json() == 6


@pytest.mark.parametrize(
    "kind", ["text/plain", "text/plain; application/json", "application/x-www-form-urlencoded", "", None]
)
def test_only_what_is_called_json_is_read(server, kind):
    """Any page that a browser shows may have it send the others."""
    headers = {} if kind is None else {"Content-Type": kind}
    answer = httpx.post(server.url, content=b"3", headers=headers, timeout=SECONDS)
    assert answer.status_code == 415
    assert answer.json() == {"error": f"Content-Type: {kind or 'none'}; expected application/json"}
    two = HEAD + b"Content-Type: text/plain\r\nContent-Length: 1\r\n\r\n3"
    assert said(server, two).startswith(b"HTTP/1.1 415 ")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST.:8000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("localhost@evil.example", 421),
        ("evil.example/health?", 421),
        ("evil.example#localhost", 421),
        ("localhost,evil.example", 421),
        ("127.0.0.2", 421),
        ("[::2]", 421),
        ("[localhost", 421),
        ("", 421),
    ],
)
@pytest.mark.parametrize("path", ["/", "/metrics", "/nothing"])
def test_a_host_that_is_not_served(server, host, status, path):
    """As a page says whose name was given the address of this server."""
    found = said(server, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert int(found.split()[1]) == (404 if path == "/nothing" and status == 200 else status)


def test_a_token():
    token = "a-token-of-some-length"
    with Server(program, {"token": token.encode()}) as server:
        assert get(server.url + "/health").status_code == 200
        wrong = [None, "", "Bearer", token, f"Basic {token}", f"Bearer {token}x", f"Bearer {token[:-1]}"]
        for path in ("/", "/metrics", "/nothing"):
            for given in [*wrong, "Bearer \xe9"]:
                headers = {} if given is None else {"Authorization": given.encode("latin-1")}
                answer = httpx.get(server.url + path, headers=headers, timeout=SECONDS)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        right = {"Authorization": f"Bearer {token}"}
        assert post(server.url, json=3, headers=JSON | right).json() == 6
        assert get(server.url + "/metrics", headers=right).status_code == 200
        twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
        assert httpx.get(server.url, headers=twice, timeout=SECONDS).status_code == 401


@pytest.mark.parametrize("path", [b"/", b"/health", b"/nothing"])
def test_two_lengths_are_refused(server, path):
    """A proxy that believes the other one would take the rest for the next request."""
    both = b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n3\r\n0\r\n\r\n"
    found = said(server, HEAD.replace(b"POST /", b"POST " + path) + both)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [(b"/", b"application/json", 413), (b"/", b"text/plain", 415), (b"/health", b"a", 405), (b"/nothing", b"a", 404)],
)
@pytest.mark.parametrize("length", [b"Content-Length: %d" % 10**12, b"Transfer-Encoding: chunked"])
def test_what_is_refused_is_not_read_on(server, path, kind, status, length):
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n%s\r\n\r\n" % (path, kind, length)
    with connected(server) as connection:
        connection.sendall(head)
        sent = 0
        try:
            while sent < 1 << 30:
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                sent += 65536
        except OSError:  # it has closed
            pass
        found = received(connection)
    assert sent < 1 << 30
    assert not found or found.startswith(b"HTTP/1.1 %d " % status)  # reset: it may come too late
    assert post(server.url, json=3).json() == 6


@pytest.mark.parametrize(
    ("head", "status"),
    [(HEAD, 413), (HEAD + b"Content-Encoding: gzip\r\n", 415), (HEAD.replace(b"localhost", b"elsewhere"), 421)],
)
def test_who_is_refused_while_sending_gets_the_answer(server, head, status):
    """A reset would make clients lose it."""
    body = b" " * (1 << 18)
    with connected(server) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % (4 * len(body)))
        for _ in range(3):
            connection.sendall(body)
            time.sleep(0.05)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    assert found.startswith(b"HTTP/1.1 %d " % status)
    assert b'{"error":' in found


def test_what_waits_is_kept_as_it_came():
    """Not as lists, of which a byte makes 56."""
    begun, seen = threading.Event(), []

    def lists(sample):
        seen.append(sample)
        begun.set()
        return program("slow" if sample == [1] else len(sample))

    body = json.dumps([[]] * 20_000, separators=(",", ":")).encode()
    with Server(lists, size=1 << 20, max_in_flight=1) as server, ExitStack() as opened:
        first = opened.enter_context(connected(server))
        first.sendall(HEAD + b"Content-Length: 3\r\n\r\n[1]")
        assert begun.wait(SECONDS)
        waiting = [opened.enter_context(connected(server)) for _ in range(5)]
        for one in waiting:
            one.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        end = time.monotonic() + SECONDS
        while server.batcher.counters.waiting < 5:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert seen == [[1]]  # the others were not read
        first.close()
        assert all(received(one).endswith(b"40000.0") for one in waiting)
