"""A function of one sample as a module: the numbers are PyTorch's, and so is all that is done with modules."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import edbatch as eb
import edbatch.torch
from tests.torch.copies import COPIES
from tests.torch.networks import CLASSES, SIZE, Ours, Theirs, trees

CLOSE = {"float64": {"rtol": 1e-10, "atol": 1e-12}, "float32": {"rtol": 2e-4, "atol": 2e-5}}


def modules(dtype="float64", **options):
    """Ours, and the same in PyTorch."""
    network = Ours(dtype)
    ours = edbatch.torch.Module(network.scores, network.model, stack=True, **options)
    return ours, Theirs(ours)


def labels(samples):
    return torch.tensor([at % CLASSES for at in range(len(samples))])


def loss_of(module, samples):
    return nn.functional.cross_entropy(module(samples), labels(samples))


def assert_alike(ours, theirs, dtype="float64", gradients=True):
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.detach(), b.detach(), msg=name, **CLOSE[dtype])
        assert (a.grad is None) == (b.grad is None), name
        if gradients and a.grad is not None:
            torch.testing.assert_close(a.grad.to_dense(), b.grad.to_dense(), msg=name, **CLOSE[dtype])


OPTIMIZERS = {
    "float32": lambda p: torch.optim.SGD(p, 0.5, momentum=0.9, nesterov=True),
    "float64": lambda p: torch.optim.Adam(p, 0.05),
}


@pytest.mark.parametrize("dtype", OPTIMIZERS)
def test_training(dtype):
    both = modules(dtype)
    optimizers = [OPTIMIZERS[dtype](module.parameters()) for module in both]
    schedulers = [torch.optim.lr_scheduler.StepLR(one, 2, 0.5) for one in optimizers]
    for step in range(5):
        losses = []
        for module, one, scheduler in zip(both, optimizers, schedulers, strict=True):
            one.zero_grad(set_to_none=bool(step % 2))
            loss = loss_of(module, trees(step, 1 + 3 * step))
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 0.3)
            one.step()
            scheduler.step()
            losses.append(loss.detach())
        torch.testing.assert_close(*losses, **CLOSE[dtype])
        assert_alike(*both, dtype)


def test_gradients_add_up_over_mini_batches_and_hooks_see_them():
    both, seen = modules(), ([], [])
    for module, hooked in zip(both, seen, strict=True):
        for parameter in module.parameters():
            parameter.register_hook(lambda gradient, hooked=hooked: hooked.append(gradient.clone()) or gradient * 2)
        for seed in range(3):
            (loss_of(module, trees(seed, 5)) / 3).backward()
    assert_alike(*both)
    assert len(seen[0]) == len(seen[1]) == 12


def test_gradients_are_returned_and_flow_into_inputs():
    network = Ours()
    ours = edbatch.torch.Module(network.scored_beside, network.model, stack=True)
    theirs, samples = Theirs(ours), trees(0, 6)
    found = []
    for module in (ours, theirs):
        torch.manual_seed(0)
        layer = nn.Linear(4, SIZE, dtype=torch.float64)
        x = torch.randn(len(samples), 4, dtype=torch.float64, requires_grad=True)
        below = layer(x)
        loss = module(samples, list(below) if module is ours else below).square().sum()
        found.append([loss, *torch.autograd.grad(loss, [x, *layer.parameters(), *module.parameters()])])
        assert all(parameter.grad is None for parameter in module.parameters())
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, **CLOSE["float64"])


def test_one_tensor_of_several_samples_gets_all_its_gradients():
    network = Ours()
    module = edbatch.torch.Module(network.scored_beside, network.model)
    samples = trees(0, 4)
    x = torch.ones(SIZE, dtype=torch.float64, requires_grad=True)
    results = module(samples, [x] * 4)
    torch.testing.assert_close(module(samples, x=[x] * 4), results)
    assert isinstance(results, list)
    results[1].sum().backward(retain_graph=True)
    first = x.grad.clone()
    (results[1] + 2 * results[3]).sum().backward()
    theirs = Theirs(module)
    y = torch.ones(SIZE, dtype=torch.float64, requires_grad=True)
    expected = theirs(samples, [y] * 4)
    (only,) = torch.autograd.grad(expected[1].sum(), y, retain_graph=True)
    torch.testing.assert_close(first, only)
    (expected[1] * 2 + 2 * expected[3]).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_without_gradients():
    ours, theirs = modules()
    samples = trees(1, 5)
    for block in (torch.no_grad, torch.inference_mode):
        with block():
            y = ours(samples)
            torch.testing.assert_close(y, theirs(samples), **CLOSE["float64"])
        assert not y.requires_grad
    for parameter in ours.parameters():
        parameter.requires_grad_(False)
    assert not ours(samples).requires_grad
    ours.V.requires_grad_(True)
    loss_of(ours, samples).backward()
    assert [name for name, parameter in ours.named_parameters() if parameter.grad is not None] == ["V"]


@pytest.mark.parametrize("assign", [False, True])
def test_states_are_loaded(assign):
    ours, _ = modules()
    other, theirs = modules()
    loss_of(other, trees(0, 3)).backward()
    torch.optim.SGD(other.parameters(), 1.0).step()
    ours.load_state_dict({k: v.clone() for k, v in other.state_dict().items()}, assign=assign)
    loss_of(ours, trees(1, 4)).backward()
    theirs = Theirs(other)
    loss_of(theirs, trees(1, 4)).backward()
    assert_alike(ours, theirs)


def write_in_place(module):
    with torch.no_grad():
        module.V.mul_(2)


def replace_data(module):
    module.V.data = module.V.data * 2


def replace_parameter(module):
    module.V = nn.Parameter(module.V.detach() * 2)


def from_vector(module):
    vector = nn.utils.parameters_to_vector(module.parameters())
    nn.utils.vector_to_parameters(vector.detach() * 2, module.parameters())


def transpose(module):
    module.V.data = module.V.data.T.contiguous().T * 2


@pytest.mark.parametrize("change", [write_in_place, replace_data, replace_parameter, from_vector, transpose])
def test_parameters_may_be_changed_from_outside(change):
    ours, _ = modules()
    for _ in range(2):
        loss_of(ours, trees(0, 3)).backward()
        change(ours)
        ours.zero_grad()
        theirs = Theirs(ours)
        for module in (ours, theirs):
            loss_of(module, trees(1, 4)).backward()
        assert_alike(ours, theirs)


@pytest.mark.parametrize("copy_of", COPIES)
def test_copies_are_modules_of_their_own(copy_of):
    ours, _ = modules()
    loss_of(ours, trees(0, 3)).backward()
    other = copy_of(ours)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.5)
    theirs = Theirs(other)
    for module in (other, theirs):
        module.zero_grad()
        loss_of(module, trees(1, 4)).backward()
    assert_alike(other, theirs)
    assert not torch.equal(other.V, ours.V)
    network = Ours()
    of_a_function = edbatch.torch.Module(lambda x: network.scores(x), network.model)
    with pytest.raises(eb.EdBatchError, match="expected a method of an object that has the parameters"):
        copy_of(of_a_function)


def test_sparse_gradients_of_tables():
    both = modules(sparse=True)
    assert both[0].sparse
    for module in both:
        loss_of(module, trees(3, 3)).backward()
    assert both[0].table.grad.is_sparse
    assert_alike(*both)
    torch.optim.SparseAdam([both[0].table], 0.1).step()


def test_dropout_follows_torch_and_eval():
    network = Ours(dropout=0.5)
    module = edbatch.torch.Module(network.scores, network.model, stack=True)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(module(trees(0, 8)))
    torch.testing.assert_close(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    module.eval()
    torch.testing.assert_close(module(trees(0, 8)), Theirs(module)(trees(0, 8)))


def test_results_may_be_nested():
    network = Ours()
    module = edbatch.torch.Module(
        lambda tree: {"state": network.state(tree), "scores": [network.scores(tree)], "name": "x", "none": None},
        network.model,
    )
    theirs, samples = Theirs(module), trees(0, 3)
    found = module(samples)
    for one, sample in zip(found, samples, strict=True):
        h, c = theirs.state(sample)
        assert one["name"] == "x"
        assert one["none"] is None
        torch.testing.assert_close(one["state"], (h, c))
        torch.testing.assert_close(one["scores"], [theirs([sample])[0]])
    sum(one["state"][1].sum() for one in found).backward()
    sum(theirs.state(sample)[1].sum() for sample in samples).backward()
    for name in ("compose.W", "compose.b"):
        torch.testing.assert_close(module.get_parameter(name).grad, theirs.get_parameter(name.replace(".", "_")).grad)


def test_what_a_mini_batch_does_not_use_has_no_gradient():
    """So that optimizers leave it alone, as they do where PyTorch has not seen it."""
    both = modules()
    optimizers = [torch.optim.AdamW(module.parameters(), 0.1, weight_decay=0.5) for module in both]
    for step, samples in enumerate(([3, 5], [(3, 5)], [7], [(1, (2, 3))])):
        for module, optimizer in zip(both, optimizers, strict=True):
            optimizer.zero_grad()
            loss_of(module, samples).backward()
            optimizer.step()
        assert (both[0].get_parameter("compose.W").grad is None) == (step % 2 == 0)
        assert_alike(*both)


def test_a_loader_with_workers():
    ours, theirs = modules()
    loader = DataLoader(trees(0, 12), batch_size=4, collate_fn=list, num_workers=2)
    for module in (ours, theirs):
        for samples in loader:
            loss_of(module, samples).backward()
    assert_alike(ours, theirs)


def refused(message):
    return pytest.raises((RuntimeError, eb.EdBatchError), match=message)


def test_what_is_refused():
    ours, _ = modules()
    loss = loss_of(ours, trees(0, 3))
    with refused("create_graph=True, gradients of gradients, is not supported"):
        torch.autograd.grad(loss, [ours.V], create_graph=True)
    loss = loss_of(ours, trees(0, 3))
    with torch.no_grad():
        ours.V.mul_(2)
    with refused("modified by an inplace operation"):
        loss.backward()
    loss = loss_of(ours, trees(0, 3))
    loss.backward()
    with refused("second time"):
        loss.backward()
    network = Ours("float32")
    module = edbatch.torch.Module(network.scored_beside, network.model)
    with refused(r"a tensor of torch.float64, shape \[6\]: expected float32"):
        module(trees(0, 1), [torch.ones(SIZE, dtype=torch.float64, requires_grad=True)])
    ours.double()
    ours.float()
    with refused(r"expected float64 of shape \(12, 12\), got float32"):
        ours(trees(0, 1))
    one = [torch.ones(SIZE)]
    for given, message in (
        ((3,), "a list of samples"),
        ((), "lists of equal lengths"),
        ((trees(0, 2), one), r"\[2, 1\]"),
    ):
        with refused(message):
            module(*given)
    with refused("a sample gave"):
        edbatch.torch.Module(lambda x: object(), network.model)([1])
    for function, collection in ((3, network.model), (network.scores, None)):
        with refused("edbatch.torch.Module: expected"):
            edbatch.torch.Module(function, collection)
