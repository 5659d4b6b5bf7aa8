"""Sides that take turns, and the profiler's events."""

import pytest

pytest.importorskip("torch", reason="the extra bench")


class Event:
    def __init__(self, name, start, end, on_device=True):
        from types import SimpleNamespace

        from torch.autograd import DeviceType

        self.name = name
        self.time_range = SimpleNamespace(start=start, end=end)
        self.device_type = DeviceType.CUDA if on_device else DeviceType.CPU


def test_device_is_busy_while_anything_runs():
    from scripts.gpu.clock import _summary

    found = _summary(
        [
            Event("gemm", 10, 20),
            Event("gemm", 15, 18),  # inside the first, on another stream
            Event("add", 19, 25),
            Event("Memcpy HtoD", 40, 41),
            Event("Memset", 50, 52),
            Event("cudaLaunchKernel", 0, 1, on_device=False),
            Event("cudaStreamSynchronize", 60, 90, on_device=False),
            Event("cudaMalloc", 90, 91, on_device=False),
            Event("cudaHostAlloc", 91, 92, on_device=False),
        ]
    )
    assert found.busy == pytest.approx(18e-6)
    assert (found.launches, found.copies, found.waits, found.allocations) == (3, 2, 1, 2)
    assert found.kernels == {"gemm": pytest.approx(13e-6), "add": pytest.approx(6e-6)}


def test_waits_of_the_profiler_itself_do_not_count(monkeypatch):
    from scripts.gpu import clock

    clock._waits_of_the_profiler.cache_clear()
    wait = Event("cudaDeviceSynchronize", 0, 1, on_device=False)
    runs = iter([[wait] * 5, [wait], [wait, Event("gemm", 0, 1), wait], [wait]])
    monkeypatch.setattr(clock, "_events", lambda run: next(runs))
    assert [clock.profile(lambda: None).waits for _ in range(2)] == [1, 0]
    clock._waits_of_the_profiler.cache_clear()


def test_sides_take_turns_and_one_that_fails_leaves_the_others_alone():
    from scripts.gpu.clock import WARM_UPS, Side, measure

    ran = []

    def fail(number):
        if number == 3:
            raise ValueError("no\nfourth")

    def side(name, run=lambda number: None):
        return Side(name, lambda number: number, lambda number: (ran.append((name, number)), run(number)))

    sides = [side("a"), side("b", fail), side("c")]
    times = measure(sides, (2, 3, 4), (5, 6, 7), seconds=60, wait=lambda: None)
    assert times["b"].error == "ValueError: no fourth"
    assert times["a"].error is None
    assert len(times["a"].figures["total"]) == len(times["c"].figures["host"]) == 3
    assert ran[: 3 * WARM_UPS] == [(name, number) for number in range(WARM_UPS) for name in "abc"]
    turns = ran[3 * WARM_UPS :]
    assert turns[:6] == [(name, number) for number in (2, 3) for name in "abc"]
    assert turns[6:8] == [("a", 4), ("c", 4)]
    assert turns[8:] == [(name, number) for name in "ac" for number in (5, 6, 7)]  # in a row: others


def test_when_time_is_over_two_turns_are_enough():
    from scripts.gpu.clock import Side, measure

    ran = []
    times = measure([Side("a", lambda number: number, ran.append)], range(2, 50), range(50, 98), 0, lambda: None)
    assert len(times["a"].figures["total"]) == 2
    assert ran == [0, 1, 2, 3, 50, 51]
    assert times["a"].figures["in a row"][0] > 0


def test_preparation_is_told_apart():
    from time import sleep

    from scripts.gpu.clock import Side, measure

    side = Side("a", lambda number: sleep(0.02), lambda prepared: sleep(0.001))
    times = measure([side], (2, 3), (4, 5), seconds=0, wait=lambda: None)["a"].medians()
    assert times["preparation"] >= 20
    # Of two turns, medians are means; and sums in milliseconds are rounded.
    assert times["total"] == pytest.approx(times["preparation"] + times["prepared"])
    assert times["host"] >= times["preparation"] + 1


def test_nobody_waits_between_preparation_and_run():
    """What a side uploads may still be on its way when it begins."""
    from scripts.gpu.clock import WARM_UPS, Side, measure

    done = []
    side = Side("a", lambda number: done.append("prepare"), lambda _: done.append("run"))
    measure([side], (2, 3), (4, 5), seconds=0, wait=lambda: done.append("wait"))
    turn = ["wait", "prepare", "run", "wait"]
    assert done == [*turn * (WARM_UPS + 2), "wait", *["prepare", "run"] * 2, "wait"]
