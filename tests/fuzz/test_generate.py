"""Programs reach everything there is: a new op, operator, option or policy that they do not call fails here."""

import re
from inspect import isroutine, signature

import pytest

import edbatch as eb
from tests.fuzz import oracle
from tests.fuzz.calls import CALLS
from tests.fuzz.generate import generate
from tests.fuzz.test_fuzz import CELLS, PROGRAMS

OTHERS = """all array backward cell current_graph device foreign foreign_run forward from_dlpack from_torch get_policy
gradients learn options replay run seed show_config values vertex"""
OPS = [name for name in eb.__all__ if isroutine(getattr(eb, name)) and name not in OTHERS.split()]
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
    return any(re.search(pattern, source) for source in sources)


@pytest.mark.parametrize("name", OPS)
def test_every_op_is_called(name, sources):
    assert name in CALLS, f"tests/fuzz/calls.py does not say how {name} is called"
    assert hasattr(oracle, name), f"tests/fuzz/oracle.py does not say what {name} means"
    assert reached(sources, rf"\beb\.{name}\(")


def test_every_op_is_called_in_cells(sources):
    bodies = "\n".join(line for source in sources for line in source.split("\n") if re.search(r" u\d+ = ", line))
    assert {name for name in OPS if f".{name}(" not in bodies} <= {"input", "scalar"}


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_used(name, sources):
    assert hasattr(eb.Expression, f"__{name}__")
    assert reached(sources, OPERATORS[name])


def test_every_method_is_called(sources):
    methods = {name for name in dir(eb.Expression) if isroutine(getattr(eb.Expression, name, None)) and name[0] != "_"}
    for name in methods - {"item", "numpy", "tolist", "dim", "size", "numel"}:
        assert reached(sources, rf"[a-z]\d+\.{name}\("), name


def test_every_policy_and_option_is_used(sources):
    with pytest.raises(eb.EdBatchError) as refused:
        eb.get_policy("?")
    names = re.search(r"names are (.*)$", str(refused.value))[1].split(", ")
    for policy in [*names, "None"]:
        assert reached(sources, rf"policy='?{policy}\b"), policy
    for name, option in signature(eb.options).parameters.items():
        assert reached(sources, rf"options\([^)]*\b{name}=(?!{option.default!r})"), name


@pytest.mark.parametrize(
    "what",
    [
        r"\*, s0", r"k0: int", r"k1: int", r"class Nf", r"return u\d+, ", r"return .*a\d", r"g2 =", r"m1 =", r"\ndel ",
        "set_value", r"t\d.update", "zero_grad", r"\.backward\(\)", r"\.backward\(np", "float64", r"-0\.0",
        r"    u\d+(, u\d+)* = f\d+\(", r"check_nan", r"eb.replay\n", r"r0\(\(\(.*\n.*r0\(\(\(",
        r"eb.vertex\n", r"for _ in range\(3\)\]", r"pushed", r"scattered\[0\]", r"x\.gather\(\)\)", r"\.of\(0\)",
        r"x\.gather\(0\)", r"eb\.array\(",
        r"async def", r"eb\.all\(", r"eb\.values\(", r"yield \[", r"limit=1", r"show\('run'",
        r"(.*\.backward\(.*\))\n\1\n", r"\.backward\([\s\S]*\.backward\(",
        r"\.backward\([\s\S]* = eb\.[\s\S]*\.backward\(",
        r"eb\.backward\(.*o\d", r"eb\.backward\(.*, None", r"eb\.gradients\(.*o\d.*\], \[.*p\d.*\], \[",
        r"f\d+\(.*np\.array", r"f\d+\([^()]*\bp\d", r", -\d\)",
    ],
)  # fmt: skip
def test_what_else_programs_do(what, sources):
    assert reached(sources, what)


def test_a_seed_is_a_program():
    assert generate(7).source() == generate.__wrapped__(7).source() != generate(8).source()
