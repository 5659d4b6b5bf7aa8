"""Functions take turns; what they say of themselves is kept."""

import gc

from scripts.bench.measure import interleaved


def test_functions_take_turns_after_rounds_that_do_not_count():
    ran = []
    runs = interleaved({name: lambda name=name: ran.append(name) for name in "ab"}, 3, warm_ups=2)
    assert "".join(ran) == "ab" * 5
    assert all(len(of.wall) == len(of.cpu) == 3 for of in runs.values())


def test_arguments_are_made_for_each_run():
    made, got = [], []
    functions = {"a": lambda x: got.append(("a", x)), "b": lambda x: got.append(("b", x))}
    interleaved(functions, 2, given=lambda number: made.append(number) or 10 * number)
    assert made == [0, 0, 1, 1, 2, 2]
    assert got == [("a", 0), ("b", 0), ("a", 10), ("b", 10), ("a", 20), ("b", 20)]


def test_when_time_is_over_two_rounds_are_enough():
    assert len(interleaved({"": lambda: None}, 50, limit=0)[""].wall) == 2


def test_figures_and_medians():
    runs = interleaved({"a": lambda number: {"x": number, "y": 1.0}}, 4, given=lambda number: number)["a"]
    assert runs.figures == {"x": [1, 2, 3, 4], "y": [1.0] * 4}
    assert runs.medians() == {"x": 2.5, "y": 1.0}
    runs.cpu = [0.2, 0.1, 0.4]
    assert runs.ms(per=2) == 100.0


def test_results_are_freed_before_the_next_run():
    class Result:
        alive = 0

        def __init__(self):
            Result.alive += 1

        def __del__(self):
            Result.alive -= 1

    seen = []
    interleaved({"a": lambda: (seen.append(Result.alive), Result())[1]}, 2)
    gc.collect()
    assert seen == [0, 0, 0]
