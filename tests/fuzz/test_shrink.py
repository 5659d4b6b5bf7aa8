"""Failing programs become small, and still fail in the same way."""

from tests.fuzz import oracle
from tests.fuzz.generate import generate
from tests.fuzz.program import Program, Statement
from tests.fuzz.run import Failure, check, shown
from tests.fuzz.shrink import shrunk


def test_a_program_is_made_small():
    """Of an op with a wrong gradient little more is left than a call and a way back."""

    class Faulty:
        def __getattr__(self, name):
            return getattr(oracle, name)

        def softsign(self, x):
            return oracle.scale_gradient(oracle.softsign(x), 2.0)

    def test(program):
        return check(program, run=lambda code: shown(code, Faulty()))

    calling = (program for seed in range(1000) if "eb.softsign(" in (program := generate(seed, 12)).source())
    for program in calling:
        failure = test(program)
        if failure is not None and failure.kind == "wrong" and len(program.statements) > 40:
            break
    small, failure = shrunk(program, failure, test)
    assert failure.kind == "wrong"
    assert "eb.softsign(" in small.source()
    assert len(small.statements) <= 10
    assert test(small) == failure


def test_cells_lose_statements_and_objects():
    body = (Statement("u1 = eb.exp(a0)"), Statement("u2 = eb.tanh(u1)"), Statement("u3 = a0 + p0"))
    program = Program(
        0,
        statements=(
            Statement("m0 = eb.ParameterCollection()"),
            Statement("p0 = m0.add_parameters((2,), init=0.5)"),
            Statement("f0(a0)", body=body, returns="u2, u3", method=True),
            Statement("g0 = eb.Graph(policy='depth')"),
            Statement("v1 = eb.input(np.ones(2))", "with eb.options(split=False), g0: "),
            Statement("v2, v3 = f0(v1)", "with eb.options(split=False), g0: "),
            Statement("del g0, v1, v2, v3"),
        ),
    )
    assert check(program, run=lambda code: shown(code, oracle)) is None

    def test(program):
        shown(compile(program.source(), "program", "exec"), oracle)  # it must be one
        return Failure("tanh", "") if "eb.tanh(" in program.source() and "f0(v1)" in program.source() else None

    small, _ = shrunk(program, test(program), test)
    lines = small.source().splitlines()
    assert lines == [
        "@eb.cell",
        "def f0(a0):",
        "    u2 = eb.tanh(a0)",
        "    return u2, a0",
        "g0 = eb.Graph(policy='none')",
        "with g0: v1 = eb.input(np.ones(2))",
        "with g0: v2, v3 = f0(v1)",
    ]
