"""Real HTTP on the loopback interface: every answer is that of the request alone, whatever others do."""

import threading
import time

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
