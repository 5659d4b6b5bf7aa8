"""`edbatch warm-up`: everything compiled ahead."""

import os
import subprocess
import sys

import pytest

from edbatch.cli import warm_up
from edbatch.compiling import compiled
from edbatch.compiling.cache import cache_folder
from edbatch.compiling.fingerprint import callees
from edbatch.models.workloads import NINE, WORKLOADS


def test_it_runs_programs_with_nothing_interpreted_and_says_what_there_is(edbatch, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    patience = compiled.PATIENCE

    @compiled.compiled(small=True)
    def length(x):
        return len(x)

    named = [("length", lambda: length(b"abc")), *[one for one in warm_up.programs() if not one[0]]]
    monkeypatch.setattr(warm_up, "programs", lambda: named)
    status, out, err = edbatch("warm-up")
    assert (status, err) == (0, "")
    assert length.overloads
    begun, first, second = out.splitlines()
    assert begun.startswith("training and the nine models of the papers: ready after ")
    assert first.startswith("all else: ready after ")
    assert second.startswith(f"{cache_folder()}/: 1 file, ")
    assert patience == compiled.PATIENCE


def test_its_programs_run_what_there_is():
    programs = dict(warm_up.programs())
    assert set(WORKLOADS) | {"Adam", "SGD", "policies", "all policies"} < set(programs)
    assert list(programs)[: len(NINE)] == list(NINE)
    for name in ("vertex functions", "SGD", "policies", "tagger"):
        programs[name]()


@pytest.mark.slow
def test_afterwards_nothing_is_left_to_compile(edbatch):
    assert edbatch("warm-up")[0] == 0
    ready = [function for function in compiled.functions if function.overloads]
    called = set().union(*map(callees, ready))  # is in what calls it
    missing = [
        f"{function.__module__}.{function.__name__}"
        for function in set(compiled.functions) - called
        if function.__module__.startswith("edbatch.")
        and not any(".cuda." in one.__module__ for one in callees(function))  # also of the interpreter for GPUs
        and "inline" not in function.targetoptions  # is part of the kernels that call it
    ]
    assert missing == []


LATER = """
from random import Random
import edbatch as eb
from edbatch.compiling import cache, compiled
from edbatch.models.workloads import NINE, WORKLOADS

before = set(cache.cache_folder().iterdir())
for name in NINE:
    workload = WORKLOADS[name]
    samples, sizes, _ = workload.number(workload.generate(12, 1))
    model = eb.ParameterCollection(seed=0)
    network, trainer = workload.network(model, *sizes, 16), eb.Adam(model)
    loss_of = lambda network, sample: eb.sum([eb.pick(p, 0) for p in workload.probabilities(network, sample)])
    for loss in (loss_of, eb.replay(loss_of)):
        for seed in range(6):
            Random(seed).shuffle(samples)
            with eb.Graph():
                total = eb.sum([loss(network, sample) for sample in samples[:8]])
            total.backward()
            trainer.update()

E = eb.ParameterCollection(seed=0).add_lookup_parameters((4, 3))

@eb.vertex
def leaf(v):
    v.scatter(eb.lookup(E, v.pull()))

@eb.vertex
def inner(v):
    v.scatter(eb.tanh(v.gather(0) + v.gather(1)))
    v.push(v.gather(0))

with eb.Graph():
    found = eb.vertex(leaf, inner)(eb.InputGraph([0, 2, 2, 4, 4], [1, 2, 1, 3], [1, 0, 1, 0]), [0, 1])
    eb.sum([x[0] for x in found.pushed]).backward()
interpreted = [f.py_func.__qualname__ for f in compiled.functions if getattr(f, "_interpreted", 0) > 0]
print(interpreted, sorted(path.name for path in set(cache.cache_folder().iterdir()) - before))
"""


@pytest.mark.slow
def test_programs_that_run_later_compile_and_interpret_nothing(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def python(*given):
        return subprocess.run(
            [sys.executable, *given], env=environment, capture_output=True, text=True, check=True
        ).stdout

    python("-m", "edbatch", "warm-up")
    assert python("-c", LATER) == "[] []\n"
