"""Each function and method of lazy tensors, with values and gradients, beside PyTorch's own."""

import re
from functools import partial
from inspect import signature
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F  # noqa: F401 (of the cases)
from torch import nn
from torch.testing._internal.generated.annotated_fn_args import annotated_args
from torch.utils._pytree import tree_flatten

import edbatch as eb
import edbatch.torch
from edbatch.torch.lazy import LazyTensor, Refused
from edbatch.torch.registry import HANDLERS, METHODS, name_of
from tests.torch import table
from tests.torch.cases import CASES, ERRORS

SHAPES = {
    "v": (5,), "w": (5,), "p": (5,), "q": (5,), "m": (3, 5), "n": (3, 5), "k": (5, 4), "t": (2, 3, 4), "u": (2, 3, 4),
    "s": (), "c": (1, 2, 6, 6), "W": (4, 5), "b": (4,), "B": (3, 5, 5), "W2": (8, 5), "U2": (8, 2),
}  # fmt: skip
PARAMETERS = ("W", "b", "B", "W2", "U2")


class Case(nn.Module):
    """Runs code with tensors."""

    def __init__(self, code, dtype=torch.float64):
        super().__init__()
        self.code = compile(code, code, "eval")
        torch.manual_seed(len(code))
        for name, shape in SHAPES.items():
            self.register_parameter(name, nn.Parameter(torch.randn(shape, dtype=dtype)))

    def given(self, scale):
        given = {name: getattr(self, name) for name in PARAMETERS}
        given |= {name: getattr(self, name) * scale for name in SHAPES if name not in given}
        given["p"], given["q"] = given["p"].sigmoid(), given["q"].sigmoid()
        given["i"] = torch.arange(15).reshape(3, 5) * 7 % 3
        given["j"] = torch.tensor([4, 0, 2])
        given["mask"] = torch.arange(15).reshape(3, 5) % 4 > 1
        return given

    def forward(self, scale):
        return eval(self.code, globals(), self.given(scale))


def leaves_and_gradients(module, results):
    leaves = [x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in tree_flatten(results)[0] if x is not None]
    total = 0.0
    for number, x in enumerate(leaves):
        if x.requires_grad:
            total = total + (x * torch.linspace(1, 2 + number, x.numel(), dtype=x.dtype).reshape(x.shape)).sum()
    module.zero_grad()
    if isinstance(total, torch.Tensor):
        total.backward()
    return leaves, {
        name: x.grad if x.grad is not None else torch.zeros_like(x) for name, x in module.named_parameters()
    }


def compared(module, samples, rtol=1e-9, batched=None):
    theirs, wanted = leaves_and_gradients(module, [module(one) for one in samples])
    batched = batched or edbatch.torch.Batched(module)
    ours, found = leaves_and_gradients(module, batched(samples))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a.detach(), b.detach(), rtol=rtol, atol=rtol, equal_nan=True)
    for name, gradient in wanted.items():
        says = partial("{}: {}".format, name)
        torch.testing.assert_close(found[name], gradient, rtol=rtol, atol=rtol, equal_nan=True, msg=says)


NANS = ("F.kl_div(m, n.detach())", "(F.cross_entropy(m, j * 0 - 100), F.cross_entropy(v, -100 - 0 * j[0]))")


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
@pytest.mark.parametrize("code", [*CASES, *NANS])
def test_function(code):
    compared(Case(code), [1.0, -0.7])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", ERRORS)
def test_errors_of_pytorch(code):
    for module in (Case(code), lambda one: edbatch.torch.Batched(Case(code))([one])):
        with pytest.raises((RuntimeError, IndexError, ValueError, NotImplementedError, TypeError)):  # EdBatch's, too
            module(1.0)


def test_every_function_has_a_case():
    text = "\n".join(CASES)
    for function, handler in HANDLERS.items():
        name = name_of(function)
        *_, last = name.split(".")
        if handler.__module__.endswith(".theirs"):  # called as it is, as a function or as a method
            assert f"{last.removesuffix('_with_indices')}(" in text or last == "__get__", name
            continue
        if name.startswith("torch.Tensor.") or last in ("T", "mT", "spmm") or last == name:
            continue  # below
        place = "F." if ".nn.functional." in name else "torch."
        assert last.startswith(("_", "multi_head", "linear_cross")) or f"{place}{last}(" in re.sub(
            r"torch\.(special|linalg)", "torch", text
        ), name
    for name, handler in METHODS.items():
        assert handler.__module__.endswith(".theirs") or re.search(rf"[\w)\]]\.{name}\b", text), name


GIVEN = {
    "int64_t": 1, "SymInt": 1, "double": 1.0, "bool": False, "Scalar": 1.0, "IntArrayRef": [1], "SymIntArrayRef": [1],
    "c10::string_view": "a", "ScalarType": torch.float32,
}  # fmt: skip


def arguments(function, h):
    """Some for a function that PyTorch lets classes override, with a lazy tensor wherever there may be one."""
    if (known := annotated_args.get(function)) is None:
        given = signature(torch.overrides.get_testing_overrides()[function]).parameters.values()
        given = [one for one in given if one.default is one.empty and one.kind is not one.KEYWORD_ONLY]
        return ["ab" if one.name == "equation" else h for one in given], {}
    found = {}
    for one in known:
        kind, size = one["simple_type"], int(one.get("size") or 1)
        value = None if kind.endswith("?") else h if kind == "Tensor" else GIVEN.get(kind, [h, h])
        found[one["name"]] = (value * size if kind.endswith("ArrayRef") else value, one["is_kwarg_only"] == "True")
    at, named = ([(name, x) for name, (x, by_name) in found.items() if by_name is kind] for kind in (False, True))
    return [x for _, x in at], dict(named)


@pytest.mark.filterwarnings("ignore")  # of what PyTorch will remove
def test_all_else_is_refused():
    """Of what PyTorch lets classes override, and of the attributes of tensors."""

    def walked(h):
        for space, functions in torch.overrides.get_overridable_functions().items():
            for function in functions if isinstance(space, ModuleType) else ():
                if function not in HANDLERS and function is not torch.autocast:  # which is a class
                    at, named = arguments(function, h)
                    with pytest.raises(eb.EdBatchError, match=name_of(function).rpartition(".")[2]):
                        function(*at, **named)
        for name in dir(torch.Tensor):
            if not name.startswith("__") and isinstance(vars(LazyTensor).get(name), Refused):
                with pytest.raises(eb.EdBatchError, match=rf"torch.Tensor.{name} of a lazy tensor is not supported"):
                    getattr(h, name)
            assert name in ("__dict__", "__weakref__") or hasattr(LazyTensor, name) or name.startswith("__"), name
        return h

    case = Case("walked(v)")
    case.forward = lambda scale: walked(case.v * scale)
    edbatch.torch.Batched(case)([1.0])


@pytest.mark.skipif(table.VERSION not in table.PAGE.read_text(), reason="the page is of another PyTorch")
def test_the_page_lists_them():
    assert table.PAGE.read_text() == table.page(), "python -m tests.torch.table writes it"
