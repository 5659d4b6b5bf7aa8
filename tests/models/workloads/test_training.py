"""What is right at the places of samples, by an oracle of its own for each kind; every model learns it."""

from dataclasses import replace

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.dependencies import DependencySentence
from edbatch.data.lattices import Arc, Lattice
from edbatch.data.parallel import SentencePair
from edbatch.data.programs import Program, Step
from edbatch.data.random_points import LabelledPoint
from edbatch.data.tagged import TaggedSentence
from edbatch.data.trees import parse_tree
from edbatch.models.workloads import WORKLOADS, get_workload
from tests.models.against_torch import randomized
from tests.models.workloads.test_workloads import softmax

TREE = parse_tree("(3 (2 so) (4 (1 very) (0 good)))")
PARSED = DependencySentence(["Mary", "sings", "loudly"], [2, 0, 2], ["nsubj", "root", "advmod"])
CROSSED = DependencySentence(["a", "b", "c", "d"], [0, 4, 1, 1], ["r"] * 4)
QUESTION = Program("", [Step("scene", (), ()), Step("count", (0,), ())], "3")
KNOWN = [
    ("tree-lstm", TREE, [2, 1, 0, 4, 3]),
    ("td-tree-lstm", TREE, ["()", "so", "()", "very", "good"]),
    ("tagger", TaggedSentence(["a", "b"], ["X", "O"]), ["X", "O"]),
    ("lattice-gru", Lattice([0, 2, 1], [(), (Arc(0, 7),), (Arc(1, 8), Arc(0, 30))]), [2, 1]),
    ("language-model", ["a", "b", "a"], ["a", "b", "a", "</s>"]),
    ("encoder-decoder", SentencePair(["x"], ["a", "b"]), ["a", "b", "</s>"]),
    ("parser", PARSED, ["shift", "left-nsubj", "shift", "shift", "right-advmod", "left-root"]),
    ("parser", CROSSED, None),
    ("module-network", QUESTION, ["3"]),
    ("module-network", replace(QUESTION, answer=None), None),
    ("mixture-of-experts", LabelledPoint([0.1, 0.5], 1), [1]),
]
TRAINABLE = [name for name, workload in WORKLOADS.items() if workload.right]


def made(name, n, dtype="float32"):
    """A small network of made-up samples with labels."""
    workload = get_workload(name)
    found = workload.generate(n, 1)
    if name == "module-network":
        found = [replace(program, answer="yes") for program in found]
    samples, numbered = workload.labelled(found)
    model = eb.ParameterCollection(seed=0, dtype=dtype)
    return workload, workload.network(model, *numbered.sizes, 4), samples, model


@pytest.mark.parametrize(("name", "sample", "expected"), KNOWN)
def test_what_is_right(name, sample, expected):
    found = get_workload(name).right(sample)
    assert (found if found is None else list(found)) == expected


def test_right_transitions_make_the_arcs_of_the_sentence():
    for sentence in get_workload("parser").generate(20, 3):
        configuration, relations = eb.models.parser.Configuration(len(sentence)), {}
        for action in get_workload("parser").right(sentence):
            move, _, relation = action.partition("-")
            if relation:
                relations[configuration.stack[-1]] = relation
            configuration.apply(eb.models.parser.Move[move.upper()])
        assert configuration.is_over
        assert configuration.heads == sentence.heads
        assert [relations[word] for word in range(1, 1 + len(sentence))] == sentence.relations


@pytest.mark.parametrize("name", TRAINABLE)
def test_losses_fall(name):
    workload, network, samples, model = made(name, 3)
    trainer, found = eb.Adam(model, lr=0.02), []
    for _ in range(6):
        with eb.Graph(policy="sufficient"):
            losses = workload.losses(network, samples)
            total = eb.sum(losses)
        assert len(losses) == sum(len(right) for _, right in samples)
        total.backward()
        found.append(float(total.value()))
        trainer.update()
    assert np.isfinite(found).all()
    assert found[-1] < found[0]


# Those whose probabilities are already those after what is right: the loss is -log of what is right among them.
@pytest.mark.parametrize(
    "name", [name for name in TRAINABLE if not WORKLOADS[name].program] + ["td-tree-lstm", "mixture-of-experts"]
)
def test_losses_are_those_of_the_probabilities(name):
    workload, network, samples, model = made(name, 2, "float64")
    randomized(model, 0.1)
    with eb.Graph(dtype="float64"):
        losses = eb.forward(workload.losses(network, samples))
        outputs = workload.outputs(network, [inputs for inputs, _ in samples])
        pairs = [
            (p, at) for of, (_, right) in zip(outputs, samples, strict=True) for p, at in zip(of, right, strict=True)
        ]
        expected = [-np.log(p[at]) for p, (_, at) in zip(eb.forward([p for p, _ in pairs]), pairs, strict=True)]
    np.testing.assert_allclose(losses, expected, rtol=1e-9)


def test_a_parser_that_is_guided_by_its_own_actions_scores_them_as_it_did():
    _, network, samples, model = made("parser", 3, "float64")
    randomized(model)
    for (words,), right in samples:
        own = [p.value() for p in eb.run([network.answer(words)], dtype="float64")[0]]
        configuration, actions = eb.models.parser.Configuration(len(words)), []
        for scores in own:
            allowed = configuration.allowed()
            actions.append(max((k for k, x in enumerate(network.known) if x.move in allowed), key=scores.__getitem__))
            configuration.apply(network.known[actions[-1]].move)
        with eb.Graph(dtype="float64"):
            guided = [softmax(scores) for scores in eb.forward(eb.run([network.guided(words, actions)])[0])]
        np.testing.assert_allclose(guided, own, rtol=1e-9)
        assert len(right) == len(own) == 2 * len(words)


def test_what_has_no_labels():
    question = get_workload("module-network")
    with pytest.raises(eb.EdBatchError, match=r"^question 2: expected one with labels$"):
        question.labelled([QUESTION, replace(QUESTION, answer=None)])
    with pytest.raises(eb.EdBatchError, match=r"^question 1: 'perhaps' is not a label of the model$"):
        question.labelled([replace(QUESTION, answer="perhaps")])
    with pytest.raises(eb.EdBatchError, match="piece 1: expected one with labels"):
        get_workload("tree-fc").labelled([["a"] * 256])
