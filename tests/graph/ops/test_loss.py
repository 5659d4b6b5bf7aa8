"""Labels that are distributions, and label smoothing: PyTorch's numbers, batched with one another."""

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")
random = np.random.default_rng(0)
SCORES, SOFT = random.normal(size=(7, 5)), random.dirichlet(np.ones(5), 7)
LABELS = random.integers(0, 5, 7)


@pytest.mark.parametrize(("dtype", "smoothing"), [("float64", 0.0), ("float32", 0.1), ("float64", 1)])
@pytest.mark.parametrize("soft", [False, True], ids=["labels", "distributions"])
@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
def test_cross_entropy_is_pytorchs(dtype, smoothing, soft, cells):
    kind = getattr(torch, dtype)
    scores, target = torch.tensor(SCORES, dtype=kind, requires_grad=True), torch.tensor(LABELS)
    if soft:
        target = torch.tensor(SOFT, dtype=kind, requires_grad=True)
    want = torch.nn.functional.cross_entropy(scores, target, label_smoothing=float(smoothing), reduction="sum")
    want.backward()

    def loss_of(x, label):
        return eb.cross_entropy(eb.tanh(x) + (x - eb.tanh(x)), label, label_smoothing=smoothing)

    loss_of = eb.cell(loss_of) if cells else loss_of
    with eb.Graph(dtype=dtype) as graph:
        xs, ps = [eb.input(x) for x in SCORES], [eb.input(p) for p in SOFT]
        loss = eb.sum(loss_of(x, p if soft else int(k)) for x, p, k in zip(xs, ps, LABELS, strict=True))
    loss.backward()
    atol = 1e-12 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(loss.value(), want.item(), rtol=atol)
    np.testing.assert_allclose([x.gradient() for x in xs], scores.grad.numpy(), atol=atol)
    if soft:
        np.testing.assert_allclose([p.gradient() for p in ps], target.grad.numpy(), atol=2 * atol)
    assert graph.report().batches < 16  # however many samples


@pytest.mark.parametrize(("dtype", "cells"), [("float64", False), ("float32", True)], ids=["ops", "cell"])
@pytest.mark.parametrize("loss", ["label", "smoothed", "distribution", "both"])
def test_large_scores_lose_nothing(dtype, cells, loss):
    soft, smoothing = loss in ("distribution", "both"), 0.1 if loss in ("smoothed", "both") else 0.0
    for large in (0, 1e4, 1e6, 1e7, 1e15, 1e30, -1e7, -1e30):
        x = (large + np.array([0, 0.5, -1, 3])).astype(dtype)
        target = [0.5, 0.2, 0.2, 0.1] if soft else 0

        def loss_of(x, p, soft=soft, smoothing=smoothing):
            return eb.cross_entropy(x * 1, p if soft else 0, label_smoothing=smoothing)

        with eb.Graph(dtype=dtype):
            given = eb.input(x)
            y = (eb.cell(loss_of) if cells else loss_of)(given, eb.input([0.5, 0.2, 0.2, 0.1]))
        y.backward()
        exact = torch.tensor(x - x.max(), dtype=torch.float64, requires_grad=True)
        wanted = torch.tensor(target, dtype=torch.float64 if soft else torch.int64)
        want = torch.nn.functional.cross_entropy(exact, wanted, label_smoothing=smoothing)
        want.backward()
        rtol = 1e-14 if dtype == "float64" else 1e-6
        np.testing.assert_allclose(y.value(), want.item(), rtol=rtol, err_msg=f"{large}")
        np.testing.assert_allclose(given.gradient(), exact.grad.numpy(), atol=rtol, err_msg=f"{large}")


def test_labels_of_any_kind():
    with eb.Graph(dtype="float64"):
        x = eb.input(SCORES[0])
        hard = eb.cross_entropy(x, 2).value()
        for label in (np.int64(2), np.array(2), [0, 0, 1, 0, 0], np.eye(5)[2], np.eye(5, dtype=bool)[2]):
            np.testing.assert_allclose(eb.cross_entropy(x, label).value(), hard)


LOSSES = {
    "cross_entropy": eb.cross_entropy,
    "smoothed": lambda x, label: eb.cross_entropy(x, label, label_smoothing=0.1),
    "hinge": eb.hinge,
    "margin": lambda x, label: eb.hinge(x, label, 0.5),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [-1, np.int64(-1), np.array(-2), 3])
def test_a_label_is_never_negative(name, label):
    with eb.Graph(policy="none") as graph:
        x = eb.ones(3)
        for _ in range(2):
            with pytest.raises(eb.EdBatchError, match=r"(label|index) .*expected one in|out of range"):
                LOSSES[name](x, label)
            LOSSES[name](x, 2)
    graph.run()  # nothing is half recorded


@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
def test_small_hinges_are_not_lost_in_the_margin(cells):
    x = np.array([1 - 2.0**-20, 2.0**-24, -3], np.float32)
    loss_of = eb.cell(lambda x: eb.hinge(x, 0)) if cells else lambda x: eb.hinge(x, 0)
    with eb.Graph():
        y = loss_of(eb.input(x))
    assert y.value() == 2.0**-20 + 2.0**-24


@pytest.mark.parametrize(("dtype", "p"), [("float32", 0.0), ("float64", 1e-40), ("float32", 0.3), ("float64", 1.0)])
def test_gradients_of_targets_are_the_slopes_of_the_loss_that_is_cut_off(dtype, p):
    with eb.Graph(policy="sufficient", dtype=dtype):
        given, target = eb.scalar(p), eb.scalar(0.5)
        loss = eb.binary_cross_entropy(given, target)
        ends = [eb.binary_cross_entropy(given, at) for at in (1.0, 0.0)]
    loss.backward()
    with_target, without = (x.value() for x in ends)
    np.testing.assert_allclose(target.gradient(), with_target - without, rtol=1e-6)


@pytest.mark.parametrize("cells", [False, True])
def test_a_hinge_that_is_just_kept_has_no_slope(cells):
    """As PyTorch's `multi_margin_loss`."""
    loss = (lambda x: eb.hinge(x, 0)) if not cells else eb.cell(lambda x: eb.hinge(x, 0))
    with eb.Graph(policy="sufficient"):
        x = eb.input([2.0, 1.0, 1.5])
        y = loss(x)
    y.backward()
    np.testing.assert_array_equal(x.gradient(), [-1, 0, 1])
