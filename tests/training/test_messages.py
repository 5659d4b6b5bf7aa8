"""What optimizers, their rules and training runs refuse, before anything has changed."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import edbatch as eb
from edbatch.training.rule import Rule
from edbatch.training.trainer import Trainer
from tests.refused import Error, check, rows_of

RULE = Rule((), ("scale", "lr", "decay"), "p = p - lr * (scale * g + decay * p)")
NO_MODEL = "expected a model with parameters, got"
NAMES = "Own.constants: expected those of the rule by name (lr, decay), got"


@dataclass(eq=False, kw_only=True)
class Own(Trainer):
    """An optimizer of one's own: what a row says."""

    rule = RULE
    given: ClassVar[Any] = None

    def constants(self, lr, updates):
        return type(self).given(lr, self.weight_decay)


def own(function, of=RULE):
    return type("Own", (Own,), {"given": staticmethod(function), "rule": of})


# fmt: off
OPTIMIZERS = [
    ("eb.Adam(eb.ParameterCollection())", Error, "Adam: expected a model with parameters"),
    *((f"eb.Adam({given})", Error, f"Adam: {NO_MODEL}") for given in (
        "3", "[]", "[W, 3]", "[{'params': []}]", "[{'lr': 0.1}]", "[{'params': 'W'}]", "model.sub('nothing')",
        "[{'params': 3.0}]", "[{'params': np.ones(2)}]", "[{'params': None}]", "[{'params': [1]}]", "deep",
        "[{'params': deep}]",
    )),
    ("eb.SGD(range(2**62))", Error, "SGD: expected what fits into memory"),
    ("eb.SGD([{'params': range(2**62)}])", Error, "SGD: expected what fits into memory"),
    ("eb.Adam([{'params': W, 'momentum': 0.1}])", Error, "Adam: group 0 sets 'momentum'; expected lr, weight_decay"),
    ("eb.Adam([{'params': W, 'clip': 0.1}])", Error, "Adam: group 0 sets 'clip'; expected"),
    ("eb.Adam([{'params': b}, {'params': W, 'lr': -1}])", Error, "Adam: lr=-1; expected"),
    ("eb.Adam([{'params': b, 'betas': (2, 3)}])", Error, "Adam: betas=2; expected"),
    ("eb.Adam([{'params': model}, {'params': W}])", Error, "Adam: Parameter(W[2]…) is in group 0 and in group 1"),
    ("eb.Adam([W, other]).state()", Error, "two parameters are named 'W'"),
    *((f"eb.SGD(model, lr={lr})", Error, "SGD: lr=") for lr in ("True", "-0.1", "float('nan')", "float('inf')")),
    ("eb.SGD(model, weight_decay='x')", Error, "SGD: weight_decay='x'"),
    ("eb.SGD(model, clip=0)", Error, "SGD: clip=0; expected a positive number or None"),
    ("eb.SGD(model, clip=-1)", Error, "SGD: clip=-1"),
    *((f"eb.SGD(model, on_bad_gradient={odd})", Error, "expected 'raise' or 'skip'") for odd in (
        "'ignore'", "None", "3", "[]", "np.ones(4)",
    )),
    *((f"eb.Momentum(model, momentum={odd})", Error, "Momentum: momentum=…; expected a number in [0, 1)") for odd in (
        "1.0", "-0.1", "float('nan')", "'0.9'", "None",
    )),
    *((f"eb.Momentum(model, nesterov={odd})", Error, "Momentum: nesterov: expected True or False, got") for odd in (
        "None", "'no'", "[]", "2", "np.array([])", "np.ones(2)",
    )),
    ("eb.AdamW(model, betas=0.9)", Error, "AdamW: betas=0.9; expected two numbers"),
    ("eb.AdamW(model, betas=(0.9, 1.0))", Error, "AdamW: betas=1.0; expected a number in [0, 1)"),
    ("eb.AdamW(model, eps=-1e-8)", Error, "AdamW: eps=-1e-08; expected a number"),
    ("eb.Adagrad(model, eps=-1)", Error, "Adagrad: eps=…; expected a number in"),
    ("eb.RMSProp(model, alpha=1)", Error, "RMSProp: alpha=…; expected a number in"),
    ("eb.Adadelta(model, rho=1.5)", Error, "Adadelta: rho=…; expected a number in"),
    # updates
    ("eb.SGD(model).update()", Error, "SGD.update: no parameter has a gradient; call loss.backward() first"),
    ("updated(eb.SGD(model, lr=lambda step: -1))", Error, "SGD: lr at step 0=-1; expected a number"),
    *((f"updated(eb.{name}(model, lr=1e39))", Error, f"{name}.update: the hyper-parameter ")
      for name in ("SGD", "Momentum", "Adagrad", "Adadelta", "RMSProp", "Adam", "AdamW", "AMSGrad")),
    *((f"t = eb.Adam(model)\nt.{name} = {value}\nupdated(t)", Error, f"Adam: {name}") for name, value in (
        ("weight_decay", "None"), ("clip", "-1"), ("clip", "'a'"), ("on_bad_gradient", "'foo'"), ("betas", "1"),
        ("eps", "-1.0"), ("eps", "'x'"), ("steps", "'x'"), ("steps", "-1"),
    )),
    *((f"eb.SGD(model).{use}({state})", Error, "SGD: a saved state: expected ") for use in ("load_state", "differences")
      for state in ("None, None", "{}, None", "[], {'optimizer': 'SGD'}", "{}, [1]")),
    # of one's own
    ("own(lambda lr, decay: {'lr': lr})(model)", Error, f"{NAMES} lr"),
    ("own(lambda lr, decay: {})(model)", Error, f"{NAMES} none"),
    ("own(lambda lr, decay: {'lr': lr, 'decay': decay, 'more': 1.0})(model)", Error, f"{NAMES} lr, decay, more"),
    ("own(lambda lr, decay: {'lr': lr, 'decay': decay, 'scale': 1.0})(model)", Error, f"{NAMES} lr, decay, scale"),
    ("own(lambda lr, decay: (lr, decay))(model)", Error, NAMES),
    ("own(lambda *_: None)(model)", Error, f"{NAMES} None"),
    *((f"own(lambda lr, decay: {{'lr': lr, 'decay': {value}}})(model)", Error, "constants: decay: expected a number")
      for value in ("None", "'1'", "[1.0]", "np.ones(2)")),
    ("d = {'lr': 0.1, 'decay': 0.0}\nt = own(lambda *_: d)(model)\nd['other'] = 1.0\nupdated(t)", Error, "decay, o"),
    ("own(lambda lr, d: {'lr': lr}, Rule((), ('lr',), 'p = p - lr * g'))(model)", Error,
     "Own.rule: expected a constant 'scale', which it multiplies"),
    ("own(lambda r, d: {'lr': r}, Rule((), ('scale', 'lr'), 'p = p - lr * scale * g'))(model, weight_decay=0.5)", Error,
     "Own: weight_decay=0.5; expected 0, its rule applies none"),
    *((f"Rule(('a',), ('c',), {body!r})", Error, f"the update rule …: {message}") for body, message in (
        ("p = p - c * g ** a", "the scalar expression …unexpected"), ("p -= c * g", "unexpected 'p -= c"),
        ("p = p - c * sqrt(g, a)", "no function 'sqrt' of so many"), ("p = p - c * root(g) + a", "no function 'root'"),
        ("p, a = a, p", "unexpected"), ("p = p -", "invalid syntax"), ("p = p - x * g", "…no value 'x'"),
        ("p = p - c * g", "does not read a"), ("p = p - a * g", "does not read c"),
        ("p = p - a * c", "does not read g"),
        ("a = c * g; p = p - a", "does not read a as given"), ("g = g + c; p = p - a * g", "unexpected 'g = g"),
        ("c = c + a; p = p - c * g", "unexpected 'c = c + a'"))),
    *((f"Rule({names}, 'p = p + g + a')", Error, "a name occurs twice among") for names in (
        "('a', 'a'), ()", "('a',), ('a',)", "('p',), ()", "(), ('g',)", "(), ('c', 'c')")),
]

RUNS = [
    ("run(batch_size=0)", Error, "Run: batch_size=0; expected an integer of at least 1"),
    ("run(save_every=1.5)", Error, "Run: save_every=1.5; expected an integer of at least 1"),
    ("run(seed=-1)", Error, "Run: seed: expected an integer of at least 0"),
    ("run(data=[])", Error, "Run: data: expected samples, got none"),
    ("run(data=np.array(None))", Error, "Run: data: expected samples, got none"),
    ("run(data={'a': 1.0})", Error, "Run: data: expected a list of samples, got dict"),
    ("run(data='train.txt')", Error, "Run: data: expected a list of samples, got str"),
    ("run(losses=3)", Error, "Run: losses: expected a function, got int"),
    ("run(evaluate=3)", Error, "Run: evaluate: expected a function, got int"),
    ("run(evaluate=np.array([]))", Error, "Run: evaluate: expected a function, got ndarray"),
    ("run(settings={'a': object()})", Error, "Run: settings: expected what JSON can hold"),
    ("run(settings={'a': [0.0, float('inf')]})", Error, "Run: settings: expected what JSON can hold"),
    ("run(settings=5)", Error, "Run: settings: expected a dictionary, got 5"),
    ("run(settings=np.ones(2))", Error, "Run: settings: expected a dictionary"),
    ("run(progress='no')", Error, "Run: progress: expected True or False, got 'no'"),
    ("run(progress=np.array([]))", Error, "Run: progress: expected True or False, got array"),
    *((f"eb.Run(folder, {model}, {trainer}, len, [1])", Error, f"Run: {message}, got") for model, trainer, message in (
        ("None", "t", "model: expected a ParameterCollection"), ("[]", "t", "model: expected a ParameterCollection"),
        ("model", "None", "trainer: expected a Trainer"), ("model", "np.ones(2)", "trainer: expected a Trainer"),
    )),
    ("run().epochs(0)", Error, "Run: epochs=0; expected an integer of at least 1"),
    ("run_one(losses=lambda xs: [eb.ones(2)])", Error, "loss 0 of a mini-batch: expected shape (), got shape (2,)"),
    ("run_one(losses=lambda xs: [1.0])", Error, "loss 0 of a mini-batch: expected shape (), got float"),
    ("run_one(losses=lambda xs: 1.0)", Error, "losses: expected expressions, got float"),
    ("run_one(losses=lambda xs: [])", Error, "losses: none for 2 samples; expected at least one"),
    ("run_one(evaluate=lambda: 0.5)", Error, "evaluate: expected numbers by name, got 0.5"),
    ("run_one(evaluate=lambda: {'accuracy': 'high'})", Error, "evaluate: expected numbers by name"),
    ("run_one(evaluate=lambda: {'loss': 3.0})", Error, "other names than the run's own epoch, loss; got 'loss'"),
    ("run_one(evaluate=lambda: {'a': 1.0, 'epoch': 7})", Error, "evaluate: expected other names …; got 'epoch'"),
]
# fmt: on


@pytest.mark.parametrize(("code", "error", "message"), rows_of(OPTIMIZERS + RUNS))
def test_what_does_not_fit_is_refused(code, error, message, tmp_path):
    deep = []
    for _ in range(10**6 if "deep" in code else 1):
        deep = [deep]
    model = eb.ParameterCollection()
    W, b = (model.add_parameters(2, name=name, init=1.0) for name in "Wb")

    def updated(trainer):
        for parameter in model:
            parameter.set_grad([1e-3, 1e-3])
        trainer.update()

    def run(**changes):
        given = {"losses": lambda xs: [eb.sum(W * x) for x in xs], "data": [1.0, 2.0], "batch_size": 2, **changes}
        return eb.Run(tmp_path / "run", model, eb.SGD(model), **given)

    names = {
        "model": model, "W": W, "b": b, "other": eb.ParameterCollection().add_parameters(2, name="W"), "deep": deep,
        "own": own, "Rule": Rule, "updated": updated, "run": run,
        "run_one": lambda **changes: list(run(**changes).epochs(1)), "folder": tmp_path / "run", "t": eb.SGD(model),
    }  # fmt: skip
    check(code, error, message, **names)
    if "evaluate=lambda" not in code:
        assert W.value().tolist() == b.value().tolist() == [1, 1]
    assert W.has_grad == ("updated(" in code)


def test_constants_go_by_name():
    rule = Rule((), ("decay", "lr", "scale"), "p = p - lr * (scale * g + decay * p)")
    W = eb.ParameterCollection().add_parameters(2, init=1.0)
    W.set_grad([2, 2])
    own(lambda lr, decay: {"lr": lr, "decay": decay}, rule)(W, lr=0.1, weight_decay=0.5).update()
    assert W.value().tolist() == pytest.approx([0.75, 0.75])
