"""Ops whose values are at hand before anything runs: they cost no batch."""

from typing import Any

from edbatch.graph.op import Kind, Op, declare
from edbatch.graph.spec import Shape


def _given(*_: Shape) -> Shape:
    raise AssertionError("the result spec of a source is given, not inferred")


def _fill(_: Any, out: Any, value: Any) -> None:
    out[...] = value


# forward(k, out, values): `values` is what the runtime found at hand for the nodes: arrays, or a parameter's array.
INPUT = declare(Op("input", _given, lambda k, out, values: k.from_host(values, out=out), Kind.SOURCE, payload=1))
PARAMETER = declare(Op("parameter", _given, _fill, Kind.SOURCE))
ZEROS = declare(Op("zeros", _given, lambda k, out, _: _fill(k, out, 0), Kind.SOURCE))
ONES = declare(Op("ones", _given, lambda k, out, _: _fill(k, out, 1), Kind.SOURCE))
