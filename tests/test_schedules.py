import math

import pytest

import edbatch as eb
from edbatch.schedules import Constant, Cosine, Exponential, Step, WarmupLinear


@pytest.mark.parametrize(
    ("schedule", "make"),
    [
        (Constant(0.3), lambda s, o: s.ConstantLR(o, factor=1.0)),
        (Step(0.3, every=4, factor=0.5), lambda s, o: s.StepLR(o, 4, 0.5)),
        (Exponential(0.3, factor=0.9), lambda s, o: s.ExponentialLR(o, 0.9)),
        (Cosine(0.3, steps=12, final=0.01), lambda s, o: s.CosineAnnealingLR(o, 12, 0.01)),
        (
            WarmupLinear(0.3, warmup=3, steps=12),
            lambda s, o: s.LambdaLR(o, lambda step: (step + 1) / 3 if step < 3 else (12 - step) / 9),
        ),
    ],
)
def test_rates_are_pytorchs(schedule, make):
    torch = pytest.importorskip("torch")
    peer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    scheduler = make(torch.optim.lr_scheduler, peer)
    for step in range(12):
        assert schedule(step) == pytest.approx(peer.param_groups[0]["lr"], rel=1e-9, abs=1e-12)
        peer.step()
        scheduler.step()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(-1.0), "Constant: lr=-1.0; expected a number"),
        (lambda: Constant(math.nan), "Constant: lr=nan"),
        (lambda: Step(1.0, every=0), "Step: every=0; expected an integer of at least 1"),
        (lambda: Step(1.0, every=2.5), "Step: every=2.5"),
        (lambda: Exponential("1", 0.5), "Exponential: lr='1'"),
        (lambda: Cosine(1.0, steps=-2), "Cosine: steps=-2"),
        (lambda: WarmupLinear(1.0, warmup=-1, steps=5), "warmup=-1; expected an integer of at least 0"),
        (lambda: WarmupLinear(1.0, warmup=5, steps=5), "warmup=5; expected fewer than steps=5"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(eb.EdBatchError, match=message):
        make()


@pytest.mark.parametrize("grows", [Exponential(0.1, factor=1.1), Step(0.1, every=1, factor=1e300)])
def test_a_rate_that_grows_out_of_all_bounds(grows):
    assert grows(1) > 0.1
    assert grows(10_000) == math.inf
    model = eb.ParameterCollection()
    W = model.add_parameters(2, init=1.0)
    trainer = eb.SGD(model, lr=grows)
    trainer.steps = 10_000
    W.set_grad([1.0, 1.0])
    with pytest.raises(eb.EdBatchError, match="SGD: lr at step 10000=inf; expected a number"):
        trainer.update()
    assert W.value().tolist() == [1, 1]
