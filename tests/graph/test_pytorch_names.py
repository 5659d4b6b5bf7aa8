"""Who writes what PyTorch has and EdBatch has not is told what to write."""

import inspect
import pydoc
import re
import traceback

import pytest

import edbatch as eb
from edbatch.graph import hints as names


@pytest.fixture
def model():
    made = eb.ParameterCollection(seed=0)
    made.add_parameters((2, 2), name="W")
    made.add_lookup_parameters((3, 2), name="E")
    return made


@pytest.fixture
def x():
    with eb.Graph():
        yield eb.input([[1.0, 2.0], [3.0, 4.0]])


def owners(model, x):
    return [
        (eb, names.FUNCTIONS),
        (x, names.VALUE | names.EXPRESSION),
        (eb.array([x, x]), names.VALUE | names.EXPRESSION),
        (model["W"], names.VALUE | names.PARAMETER),
        (model["E"], names.VALUE | names.PARAMETER),
        (eb.Adam(model), names.TRAINER),
        (model, names.COLLECTION),
    ]


def test_all_names(model, x):
    for owner, table in owners(model, x):
        for name, hint in table.items():
            with pytest.raises(
                eb.EdBatchError, match=re.escape(f"has no attribute {name!r}; expected {hint}")
            ) as found:
                getattr(owner, name)
            assert isinstance(found.value, AttributeError)
            assert not hasattr(owner, name)
            assert name not in dir(owner)
            for known in re.findall(r"\beb\.(\w+)", hint):
                assert hasattr(eb, known), hint
        with pytest.raises(AttributeError, match="no attribute 'foo'"):
            owner.foo  # noqa: B018


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: eb.softmax(x, dim=0), "softmax: expected axis= in the place of dim="),
        (lambda x: x.sum(dim=0), "sum: expected axis="),
        (lambda x: eb.sum(x, 0, keepdim=True), "sum: expected keepdims="),
        (lambda x: eb.stack([x, x], dim=0), "stack: expected axis="),
        (lambda x: eb.cell(lambda y: eb.mean(y, dim=0))(x), "mean: expected axis="),
        (lambda x: eb.dropout(x, p=0.5), "dropout: expected the rate by place"),
        (lambda x: eb.cross_entropy(x[0], 1, reduction="sum"), "cross_entropy: expected the loss of one sample"),
    ],
)
def test_keywords(call, expected):
    with pytest.raises(TypeError, match="unexpected keyword argument") as found, eb.Graph():
        call(eb.ones((2, 2)))
    assert expected in "".join(traceback.format_exception(found.value))


def test_functions_of_pytorch(x):
    torch = pytest.importorskip("torch")
    for call, instead in (
        (lambda: torch.exp(x), "eb.exp"),
        (lambda: torch.cat([x, x]), names.FUNCTIONS["cat"]),
        (lambda: torch.nn.functional.softmax(x, dim=0), "eb.softmax"),
        (lambda: torch.bincount(x), "a function of eb"),
    ):
        with pytest.raises(TypeError, match=rf"^torch\.\w+ of an expression: expected {re.escape(instead)};"):
            call()


def test_an_expression_is_no_integer(x):
    for call in (lambda: [1, 2][x], lambda: range(x)):
        with pytest.raises(TypeError, match=r"an integer of Expression.*expected int\(x.value\(\)\)"):
            call()


def test_keywords_outside_of_graphs(model):
    with eb.Graph():
        loss = eb.sum(model["W"])
    for call in (
        lambda: loss.backward(retain_graph=True),
        lambda: eb.SGD(model).zero_grad(set_to_none=True),
        lambda: model.zero_grad(set_to_none=True),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument") as found:
            call()
        assert "expected no such argument" in "".join(found.value.__notes__)


def test_keywords_of_other_functions_are_not_explained():
    def of_the_user(x):
        return x

    with pytest.raises(TypeError, match="unexpected keyword argument") as found, eb.Graph():
        of_the_user(dim=0)
    assert not hasattr(found.value, "__notes__")


def test_help_and_signatures_know_nothing_of_them():
    for kind in (eb.Expression, eb.Parameter, eb.SGD, eb.ParameterCollection):
        assert "_Missing" not in pydoc.render_doc(kind)
        inspect.signature(kind)
