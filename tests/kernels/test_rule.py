import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edbatch as eb
from edbatch.kernels.rule import LITERAL, Rule, source_in
from tests.kernels.updates import NAMES, evaluated

GIVEN = ("p", "g", "a", "b", "c", "d")


@st.composite
def bodies(draw):
    """Assignments whose right sides read any name that has a value; the first one reads all that are given."""
    known, lines = list(GIVEN), ["first = p + g + a + b + c + d"]
    known.append("first")
    for _ in range(draw(st.integers(0, 6))):
        names = st.sampled_from(known)
        expressions = st.recursive(
            names,
            lambda inner: st.one_of(
                st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
                inner.map(lambda x: f"-{x}"),
                inner.map(lambda x: f"sqrt(abs({x}))"),
                st.tuples(st.sampled_from(["maximum", "minimum"]), inner, inner).map(
                    lambda x: f"{x[0]}({x[1]}, {x[2]})"
                ),
            ),
            max_leaves=4,
        )
        target = draw(st.sampled_from(["p", "a", "b", "e", "f"]))
        lines.append(f"{target} = {draw(expressions)}")
        known.append(target)
    return draw(st.sampled_from(["\n", "; "])).join(lines)


@given(bodies(), st.lists(st.floats(-2, 2), min_size=6, max_size=6))
def test_the_walk_means_what_the_body_means(body, values):
    """Names are assigned anew, and read before and after that."""
    rule = Rule(("a", "b"), ("c", "d"), body)
    given_values = dict(zip(GIVEN, map(np.float64, values), strict=True))
    with np.errstate(all="ignore"):
        want = evaluated(rule, given_values)
        slots = {f"slot{number}": given_values[slot] for number, slot in enumerate(rule.slots)}
        constants = {f"constant{number}": given_values[name] for number, name in enumerate(rule.constants)}
        got = {**slots, **constants, "p": given_values["p"], "g": given_values["g"]}
        exec(source_in(LITERAL, rule), dict(NAMES), got)
    for name, literal in (("p", "p"), ("g", "g"), ("a", "slot0"), ("b", "slot1")):
        np.testing.assert_array_equal(got[literal], want[name])


def test_what_does_not_change_is_not_written():
    rule = Rule(("a", "b"), ("c",), "b = b + a * g; e = c * b; p = p - e")
    written = [line.split(" = ")[0] for line in source_in(LITERAL, rule).splitlines() if not line.startswith("v")]
    assert written == ["p", "slot1"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("p = p - c * g * 2", "unexpected '2'"),
        ("p = p - c * g ** a", r"unexpected 'g \*\* a'"),
        ("p = p - c * exp(g) + a", r"unexpected 'exp\(g\)'"),
        ("p = p - c * sqrt(g, a)", r"unexpected 'sqrt\(g, a\)'"),
        ("p = p - c * g if a > c else p", "unexpected 'p - c"),
        ("p -= c * g", "unexpected 'p -= c"),
        ("p, a = a, p", "unexpected"),
        ("p = p -", "invalid syntax"),
        ("p = p - x * g", "'x' has no value"),
        ("p = p - c * g", "does not read a"),
        ("p = p - a * g", "does not read c"),
        ("p = p - a * c", "does not read g"),
        ("a = c * g; p = p - a", "'a' is assigned to, before it is read"),
        ("g = g + c; p = p - a * g", "'g' is assigned to, but is given"),
        ("c = c + a; p = p - c * g", "'c' is assigned to, but is given"),
    ],
)
def test_other_bodies_are_refused(body, message):
    with pytest.raises(eb.EdBatchError, match=f"the update rule .*: {message}"):
        Rule(("a",), ("c",), body)


def test_every_name_is_one_thing():
    for slots, constants in ((("a", "a"), ()), (("a",), ("a",)), (("p",), ()), ((), ("g",))):
        with pytest.raises(eb.EdBatchError, match="a name occurs twice among"):
            Rule(slots, constants, "p = p + g + a")
