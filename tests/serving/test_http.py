"""Real HTTP on the loopback interface: every answer is that of the request alone, whatever others do."""

import asyncio
import json
import threading
import time
from random import Random

import httpx
import numpy as np
import pytest

import edbatch as eb
from tests.serving.server import JSON, Server, get, post

SIZE = 16


def make():
    """What `edbatch serve` calls."""
    model = eb.ParameterCollection(seed=0)
    W, O = model.add_parameters((SIZE, SIZE)), model.add_parameters((30, SIZE))
    words = model.add_lookup_parameters((30, SIZE))

    @eb.cell
    def step(h, word: int):
        return eb.tanh(W @ h + eb.lookup(words, word))

    async def program(sample):
        if sample == "slow":
            for _ in range(10**6):
                await eb.scalar(1.0)
                time.sleep(0.001)
        if sample == "odd":
            return object()
        if sample == "broken":
            raise RuntimeError("it is broken")
        word, n = sample
        h, found = eb.zeros(SIZE), []
        for _ in range(n):
            h = step(h, word)
            word = int(np.argmax(await (O @ h)))
            found.append(word)
        return {"words": found, "last": await h[0]}

    return model, program


def alone(samples):
    _, program = make()
    return [{"words": one["words"], "last": float(one["last"])} for one in eb.run(map(program, samples), limit=1)]


def serving(**settings):
    """A server of such a model."""
    model, program = make()
    return Server(program, model=model, **settings)


@pytest.fixture(scope="module")
def server():
    with serving() as one:
        yield one


def test_an_answer_and_what_is_about_it(server):
    answer = post(server.url, content=b"[3, 5]")
    assert answer.status_code == 200
    found = answer.json()
    (expected,) = alone([[3, 5]])
    assert found["words"] == expected["words"]
    np.testing.assert_allclose(found["last"], expected["last"], rtol=1e-6)
    assert get(server.url + "/health").json() == {"status": "ok"}
    page = get(server.url)
    assert "<title>EdBatch</title>" in page.text
    assert page.headers["content-type"].startswith("text/html")
    metrics = get(server.url + "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    lines = dict(line.rsplit(" ", 1) for line in metrics.text.splitlines() if not line.startswith("#"))
    assert float(lines['edbatch_requests_total{how="answered"}']) >= 1
    assert float(lines['edbatch_request_seconds_bucket{le="+Inf"}']) >= 1


def test_who_hangs_up_is_given_up(server):
    before = server.batcher.counters.cancelled
    with pytest.raises(httpx.TimeoutException):
        httpx.post(server.url, content=b'"slow"', headers=JSON, timeout=0.2)
    for _ in range(100):
        if server.batcher.counters.cancelled > before:
            break
        time.sleep(0.05)
    assert server.batcher.counters.cancelled == before + 1
    assert server.batcher.counters.in_flight == 0


def test_overload_and_deadline():
    with serving(max_in_flight=1, max_waiting=0, deadline=0.3) as server:
        found = []
        threads = [threading.Thread(target=lambda: found.append(post(server.url, content=b'"slow"'))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer.status_code for answer in found) == [503, 503, 504]
        refused = next(answer for answer in found if answer.status_code == 503)
        assert refused.headers["retry-after"] == "1"
        assert post(server.url, content=b"[3, 1]").status_code == 200


def load(server, count, clients):
    """So many requests of all sorts; what was asked and answered."""
    kinds = {"cancelled": 0.02, "malformed": 0.03, "oversized": 0.02, "failing": 0.03}
    answers = []

    async def client(number, http):
        random = Random(number)
        for _ in range(count // clients):
            kind, sample = "good", [random.randrange(30), random.randrange(1, 12)]
            draw = random.random()
            for name, share in kinds.items():
                if 0 <= draw < share:
                    kind = name
                draw -= share
            body = json.dumps(sample).encode()
            if kind == "cancelled":
                with pytest.raises((httpx.TimeoutException, asyncio.TimeoutError)):
                    await asyncio.wait_for(http.post(server.url, content=b'"slow"'), 0.05)
                answers.append((kind, sample, None, None))
                continue
            body = {"malformed": body[:-1], "oversized": body + b" " * 2000, "failing": b'"broken"'}.get(kind, body)
            answer = await http.post(server.url, content=body)
            answers.append((kind, sample, answer.status_code, answer.json()))

    async def main():
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=60, limits=limits, headers=JSON) as http:
            await asyncio.gather(*[client(number, http) for number in range(clients)])

    asyncio.run(main())
    return answers


def check(server, answers, count):
    assert len(answers) == count
    asked = sorted({tuple(sample) for kind, sample, _, _ in answers if kind == "good"})
    expected = dict(zip(asked, alone(asked), strict=True))
    for kind, sample, status, found in answers:
        assert status == {"good": 200, "malformed": 400, "oversized": 413, "failing": 500}.get(kind)
        if kind == "good":
            right = expected[tuple(sample)]
            assert found["words"] == right["words"]
            assert abs(found["last"] - right["last"]) < 1e-5
    for _ in range(100):
        if server.batcher.counters.in_flight == 0:
            break
        time.sleep(0.05)
    counters = server.batcher.counters
    assert (counters.in_flight, counters.waiting) == (0, 0)
    assert counters.answered == sum(kind == "good" for kind, *_ in answers)
    assert counters.failed == sum(kind in ("failing", "malformed") for kind, *_ in answers)


@pytest.mark.parametrize("count", [600, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_load_of_all_sorts(count):
    with serving() as server:
        answers = load(server, count, clients=20)
        check(server, answers, count)
