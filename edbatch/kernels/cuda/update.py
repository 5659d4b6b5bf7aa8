"""Update rules as CUDA C++: what Numba compiles for the CPU, written for NVRTC."""

from __future__ import annotations

from collections.abc import Mapping

from edbatch.kernels.cuda.source import common
from edbatch.kernels.language.cuda_functions import expression
from edbatch.kernels.language.expressions import names_of
from edbatch.kernels.rule import Language, Rule, source_in

KERNEL = """
extern "C" __global__ void {name}(long long k, long long width, const long long* rows, FLOAT* p, const FLOAT* g,
                                FLOAT* state, long long slots{constants}) {
    (void)state, (void)slots;  // some rules remember nothing
    const long long i = own_row(), j = own_column();
    if (i >= k || j >= width) return;
    const long long at = rows ? rows[i] : i;
{body}
}
"""

DTYPES = {"float": "float32", "double": "float64"}


def module_of(rules: Mapping[str, Rule]) -> str:
    """CUDA C++ of rules by name, without includes: what `source_of` says of each, and what they share."""
    return common() + "".join(source_of(rule, name) for name, rule in rules.items())


def source_of(rule: Rule, name: str = "update") -> str:
    """The rule as CUDA C++: `extern "C"` kernels `name`_float and `name`_double.

        (long long k, long long width, const long long* rows, float* p, const float* g, float* state,
         long long slots, float c0, float c1, ...)

    Row i of the gradients g [k, width] is of row rows[i] of p and state (i, if `rows` is null); no row may occur twice.
    What slot s holds of row r begins at (r * slots + s) * width. The constants have the arrays' dtype.

    The grid has a thread for every entry (see `geometry.spread`).

    Example:
        >>> source = source_of(Rule(("v",), ("lr", "keep"), "v = keep * v + g; p = p - lr * v"))
        >>> print(source.split("return;")[1].split("}")[0])
        <BLANKLINE>
            const long long at = rows ? rows[i] : i;
            const float v0 = c0;
            const float v1 = c1;
            const float v2 = p[at * width + j];
            const float v3 = g[i * width + j];
            const float v4 = state[(at * slots + 0) * width + j];
            const float v5 = ((v1 * v4) + v3);
            const float v6 = (v2 - (v0 * v5));
            p[at * width + j] = v6;
            state[(at * slots + 0) * width + j] = v5;
        <BLANKLINE>
    """
    kernels = [source_in(_language(kind), rule).replace("{name}", f"{name}_{kind}") for kind in DTYPES]
    return "".join(kernels)


def _language(kind: str) -> Language:
    """CUDA C++ with "float" or "double"."""
    return Language(
        kernel=KERNEL.replace("FLOAT", kind),
        passed=f", {kind} c{{0}}",
        constant="c{0}",
        parameter="p[at * width + j]",
        gradient="g[i * width + j]",
        slot="state[(at * slots + {0}) * width + j]",
        value=f"const {kind} v{{0}} = {{1}};",
        store="{0} = v{1};",
        indent=4,
        expression=lambda text: expression(text, {name: name for name in names_of(text)}, DTYPES[kind]),
    )
