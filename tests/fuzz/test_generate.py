"""Programs reach everything there is: a new op, operator, option or policy that they do not call fails here."""

import re
from dataclasses import fields

import pytest

import edbatch as eb
from edbatch.graph.methods import Methods
from edbatch.graph.missing_operators import MISSING
from edbatch.graph.ops import __all__ as ops
from edbatch.graph.options import Options
from edbatch.policy.heuristics import RULES
from tests.fuzz import oracle
from tests.fuzz.calls import CALLS
from tests.fuzz.generate import generate
from tests.fuzz.test_fuzz import CELLS, PROGRAMS

SYMBOLS = {"add": r"\+", "sub": "-", "mul": r"\*", "truediv": "/", "pow": r"\*\*", "matmul": "@"}
OPERATORS = {
    **{name: rf"[vp]\d+ {symbol} " for name, symbol in SYMBOLS.items()},
    **{f"r{name}": rf"= \(?(-?[\d.]+\)?|np\.array\(.*\)) {symbol} \(?[vupae]" for name, symbol in SYMBOLS.items()},
    **{name: rf"[vpu]\d+ {sign} " for name, sign in {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}.items()},
    "neg": r"= -[vpu]", "abs": r"= abs\(", "getitem": r"[vpu]\d+\[",
}  # fmt: skip


@pytest.fixture(scope="module")
def sources():
    return [generate(seed, CELLS).source() for seed in range(PROGRAMS)]


def reached(sources, pattern):
    return sum(re.search(pattern, source) is not None for source in sources)


@pytest.mark.parametrize("name", ops)
def test_every_op_is_called(name, sources):
    assert name in CALLS, f"tests/fuzz/calls.py does not say how {name} is called"
    assert hasattr(oracle, name), f"tests/fuzz/oracle.py does not say what {name} means"
    assert reached(sources, rf"\beb\.{name}\(") >= 1


def test_every_op_is_called_in_cells(sources):
    bodies = "\n".join(line for source in sources for line in source.split("\n") if re.search(r" u\d+ = ", line))
    assert {name for name in ops if f".{name}(" not in bodies} <= {"input", "scalar"}


def test_every_operator_is_used(sources):
    own = {name.strip("_") for name in dir(eb.Expression) if name.startswith("__") and name not in MISSING}
    arithmetic = {name for name in own if name in ("neg", "abs", "getitem") or {f"r{name}", name[1:]} & own}
    for name in (arithmetic | {"gt", "ge", "lt", "le"}) - {"reduce", "reduce_ex"}:
        assert reached(sources, OPERATORS[name]) >= 1, name


def test_every_method_is_called(sources):
    for name in (name for name in vars(Methods) if not name.startswith("_")):
        assert reached(sources, rf"[a-z]\d+\.{name}\("), name


def test_every_policy_and_option_is_used(sources):
    for policy in [*RULES, "None"]:
        assert reached(sources, rf"policy='?{policy}\b") >= 1, policy
    for field in fields(Options):
        if isinstance(field.default, bool):
            assert reached(sources, rf"options\([^)]*\b{field.name}={not field.default}") >= 1, field.name


@pytest.mark.parametrize(
    "what",
    [
        r"\*, s0", r"k0: int", r"k1: int", r"class Nf", r"return u\d+, ", r"return .*a\d", r"g2 =", r"m1 =", r"\ndel ",
        "set_value", r"t\d.update", "zero_grad", r"\.backward\(\)", r"\.backward\(np", "float64", r"-0\.0",
        r"    u\d+(, u\d+)* = f\d+\(", r"f\d+\(.*np\.array", r"f\d+\([^()]*\bp\d", r", -\d\)",
    ],
)  # fmt: skip
def test_what_else_programs_do(what, sources):
    assert reached(sources, what) >= 1


def test_a_seed_is_a_program():
    assert generate(7).source() == generate(7).source() != generate(8).source()
