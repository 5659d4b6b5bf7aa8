"""Reports tell the truth, and give advice where it helps and nowhere else."""

import random
import re

import numpy as np
import pytest

import edbatch as eb
from edbatch.models.workloads import WORKLOADS


@pytest.fixture(scope="module")
def model():
    made = eb.ParameterCollection(seed=0)
    made.add_parameters((4, 4), name="W")
    made.add_lookup_parameters((50, 4), name="E")
    return made


def chain(model, words):
    h = model["E"][words[0]]
    for word in words[1:]:
        h = eb.tanh(model["W"] @ h + model["E"][word])
    return h


def sentences(n, lengths=(3, 9)):
    draw = random.Random(0)
    return [[draw.randrange(50) for _ in range(draw.randint(*lengths))] for _ in range(n)]


class TestStages:
    def test_backward_and_update(self, model):
        trainer = eb.SGD(model)
        with eb.Graph(policy="sufficient") as graph:
            loss = eb.sum([eb.sum(chain(model, words)) for words in sentences(4)])
        loss.value()
        assert not {"backward", "update"} & graph.report().seconds.keys()
        loss.backward()
        first = graph.report().seconds["backward"]
        assert first > 0
        trainer.update()
        seconds = graph.report().seconds
        assert seconds["update"] > 0
        assert seconds["backward"] == first
        before = dict(seconds)
        loss = eb.sum(eb.tanh(loss))
        loss.value()
        assert graph.report().seconds["construction"] > before["construction"]
        assert "backward" in str(graph.report())
        assert "update" in str(graph.report())

    def test_an_update_is_booked_where_its_gradients_came_from(self):
        models = [eb.ParameterCollection(seed=0) for _ in range(2)]
        for made in models:
            made.add_parameters(3, name="W", init=1.0)
        graphs = []
        for made in models:
            with eb.Graph(policy="sufficient") as graph:
                eb.sum(eb.tanh(made["W"])).backward()
            graphs.append(graph)
        eb.SGD(models[0]).update()
        assert ["update" in graph.report().seconds for graph in graphs] == [True, False]


class TestByType:
    @pytest.mark.parametrize("profile", [False, True])
    def test_counts_are_those_of_the_whole(self, model, profile):
        @eb.cell
        def step(h, x):
            return eb.tanh(model["W"] @ h + x)

        with eb.options(profile=profile), eb.Graph(policy="sufficient") as graph:
            hs = [step(model["E"][i], eb.ones(4)) for i in range(5)]
            total = eb.sum([eb.sum(h) for h in hs])
        plain = eb.forward([total, *hs])
        report = graph.report()
        assert sum(use.batches for use in report.uses.values()) == report.batches
        assert sum(use.nodes for use in report.uses.values()) == report.nodes
        assert report.uses["lookup(E[50,4])"][:2] == (1, 5)
        times = [use.seconds for use in report.uses.values()]
        if profile:
            assert all(seconds > 0 for seconds in times)
            assert sum(times) <= report.seconds["execution"] + report.seconds.get("compilation", 0)
        else:
            assert times == [None] * len(times)
        assert ("ms" in report.by_type().headers) == profile
        with eb.Graph(policy="sufficient"):
            hs = [step(model["E"][i], eb.ones(4)) for i in range(5)]
            for got, want in zip(eb.forward([eb.sum([eb.sum(h) for h in hs]), *hs]), plain, strict=True):
                np.testing.assert_array_equal(got, want)


class TestAdvice:
    def test_values_read_sample_by_sample(self, model):
        with eb.Graph(policy="sufficient") as graph:
            total = 0.0
            for words in sentences(20):
                total += float(eb.sum(chain(model, words)))
        (sentence,) = graph.report().advice
        assert sentence.startswith("Values were read 20 times, each before the next sample was recorded: ")
        assert "read their sum or `eb.forward(list)` once" in sentence
        least = int(re.search(r"where (\d+) could do", sentence)[1])
        with eb.Graph(policy="sufficient") as together:
            losses = [eb.sum(chain(model, words)) for words in sentences(20)]
        eb.forward(losses)
        assert together.report().advice == []
        assert least <= together.report().batches <= 2 * least < graph.report().batches

    def test_sizes_that_differ_per_sample(self, model):
        def attend(words):
            keys = eb.stack([model["E"][word] for word in words])
            weights = eb.softmax(keys @ model["E"][words[0]])
            return eb.sum(weights @ keys)

        with eb.Graph(policy="sufficient") as graph:
            eb.sum([attend(words) for words in sentences(16, (3, 30))]).value()
        (sentence,) = graph.report().advice
        assert sentence.startswith("Sizes that differ from sample to sample keep nodes apart: ")
        assert re.search(r"stack\(\[\?\], \.\.\., axis=0\) in \d+ sizes", sentence)
        assert re.search(r"softmax\(\[\?\], axis=\(?0,?\)?\) in \d+ sizes \(\[\d+\]; \[\d+\]", sentence)
        merged, bound = map(int, re.search(r"([\d]+) batches could do instead of ([\d]+)", sentence).groups())
        assert bound == graph.report().lower_bound
        with eb.Graph(policy="sufficient") as even:
            eb.sum([attend(words) for words in sentences(16, (9, 9))]).value()
        assert even.report().advice == []
        # With one size the graph has one type for what had many.
        assert even.report().lower_bound <= merged <= even.report().lower_bound + 30

    def test_cells_that_are_made_for_each_sample(self, model):
        def step(h, x):
            return eb.tanh(model["W"] @ h + x)

        def advice(made, count=20):
            with eb.Graph(policy="sufficient") as graph:
                hs = [eb.zeros(4)] * count
                for number in range(count):
                    one = made(number)
                    for word in range(3):
                        hs[number] = one(hs[number], model["E"][word])
                eb.forward(hs)
            return graph.report().advice, graph.report().lower_bound

        cell = eb.cell(step)
        _, least = advice(lambda number: cell)
        for made in (lambda number: eb.cell(step), lambda number: eb.cell(lambda h, x: step(h, x))):
            (sentence,), bound = advice(made)
            assert sentence.startswith("Cells were made anew that compute the same, and do not run together: ")
            assert re.search(r"\(\[4\], \[4\]\) in 20 cells. Were each made once, ", sentence)
            assert f"{least} batches could do instead of {bound}" in sentence
            assert "outside of the function that is called for each sample" in sentence
        assert advice(lambda number: cell)[0] == []
        layers = [eb.ParameterCollection(seed=n).add_parameters((4, 4), name="W") for n in range(20)]
        cells = [eb.cell(lambda h, x, W=W: eb.tanh(W @ h + x)) for W in layers]
        assert not [one for one in advice(cells.__getitem__)[0] if "made anew" in one]  # each computes something else
        few = [eb.cell(step), eb.cell(step)]
        assert advice(lambda number: few[number % 2])[0] == []

    @pytest.mark.parametrize(
        ("grow", "function"),
        [(np.add, "eb.sum"), (eb.maximum, "eb.max"), (eb.minimum, "eb.min")],
        ids=["sum", "max", "min"],
    )
    def test_totals_that_grow_one_by_one(self, model, grow, function):
        def values(count=40):
            return [eb.sum(chain(model, words)) for words in sentences(count)]

        with eb.Graph(policy="sufficient") as graph:
            total, *others = values()
            for x in others:
                total = total + x if grow is np.add else grow(total, x)
            total.value()
        (sentence,) = graph.report().advice
        assert re.search(r"39 nodes (add|maximum|minimum)\(\[\], \[\]\) in a row", sentence)
        assert f"{function}(list) once" in sentence
        with eb.Graph(policy="sufficient") as together:
            getattr(eb, function[3:])(values()).value()
        assert together.report().advice == []
        least = together.report().lower_bound
        assert f"{least} batches could do instead of {graph.report().lower_bound}" in sentence

    def test_one_sample_in_a_graph(self, model):
        with eb.Graph(policy="sufficient") as graph:
            chain(model, sentences(1, (30, 30))[0]).value()
        (sentence,) = graph.report().advice
        assert sentence.startswith("Hardly anything ran together")
        with eb.Graph(policy="none") as graph:  # who asks for it knows
            chain(model, sentences(1, (30, 30))[0]).value()
        assert graph.report().advice == []

    @pytest.mark.parametrize("name", [name for name, workload in WORKLOADS.items() if not workload.program])
    def test_no_false_alarm_on_the_models(self, name):
        workload = WORKLOADS[name]
        samples, sizes, _ = workload.number(workload.generate(8, seed=0))
        network = workload.network(eb.ParameterCollection(seed=0), *sizes, dim=4)
        with eb.Graph(policy="sufficient") as graph:
            values = [eb.sum([eb.sum(x) for x in network.hidden(*sample)]) for sample in samples]
        eb.forward(values)
        assert graph.report().advice == []


class TestShown:
    def test_text_and_html(self, model):
        with eb.Graph(policy="sufficient") as graph:
            assert repr(graph) == "Graph(0 nodes, 0 of them have run)"
            assert graph._repr_html_() == "<p>Graph(0 nodes, 0 of them have run)</p>"
            for words in sentences(20):
                chain(model, words).value()
            eb.tanh(eb.ones(3))
        report = graph.report()
        text, html = str(report), report._repr_html_()
        assert report.advice
        assert text.endswith("`eb.forward(list)`.")
        assert max(map(len, text.splitlines())) <= 100
        assert "Values were read 20 times" in html
        assert "matmul(W[4,4], [4])" in html
        assert html.count("<table>") == 2
        assert re.fullmatch(r"Graph\([\d,]+ nodes, [\d,]+ of them have run\)", repr(graph))
        before = graph.report().nodes
        assert graph._repr_html_().startswith("<p>Graph(")
        assert graph.report().nodes == before  # showing runs nothing
