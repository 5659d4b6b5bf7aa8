"""Update rules as CUDA C++: what Numba compiles for the CPU, written for NVRTC."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from edbatch.kernels.cuda.fused import cuda_expression
from edbatch.kernels.rule import Language, Rule, source_in

PRELUDE = """// Written by EdBatch.
// Both are NaN if an argument is.
template <typename T> __device__ inline T maximum(T a, T b) { return a >= b || a != a ? a : b; }
template <typename T> __device__ inline T minimum(T a, T b) { return a <= b || a != a ? a : b; }
"""

KERNEL = """
extern "C" __global__ void {name}(long long k, long long width, const long long* rows, FLOAT* p, const FLOAT* g,
                                FLOAT* state, long long slots{constants}) {
    (void)state, (void)slots;  // some rules remember nothing
    const long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
    const long long entry = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long all_rows = (long long)gridDim.y * blockDim.y, entries = (long long)gridDim.x * blockDim.x;
    for (long long i = row; i < k; i += all_rows) {
        const long long at = rows ? rows[i] : i;
        #pragma unroll 1  // unrolling would count the turns first: a 64-bit division a row
        for (long long j = entry; j < width; j += entries) {
{body}
        }
    }
}
"""

FUNCTIONS = {  # by type, with their numbers of arguments
    "float": {"abs": ("fabsf", 1), "maximum": ("maximum", 2), "minimum": ("minimum", 2), "sqrt": ("sqrtf", 1)},
    "double": {"abs": ("fabs", 1), "maximum": ("maximum", 2), "minimum": ("minimum", 2), "sqrt": ("sqrt", 1)},
}


def module_of(rules: Mapping[str, Rule]) -> str:
    """CUDA C++ of rules by name, without includes: what `source_of` says of each, and what they share."""
    return PRELUDE + "".join(source_of(rule, name) for name, rule in rules.items())


def source_of(rule: Rule, name: str = "update") -> str:
    """The rule as CUDA C++: `extern "C"` kernels `name`_float and `name`_double.

        (long long k, long long width, const long long* rows, float* p, const float* g, float* state,
         long long slots, double c0, double c1, ...)

    Row i of the gradients g [k, width] is of row rows[i] of p and state (i, if `rows` is null); no row may occur twice.
    What slot s holds of row r begins at (r * slots + s) * width. The constants are rounded to the arrays' dtype.

    Rows are spread over y, entries of a row over x; a grid and blocks of any size compute all.

    Example:
        >>> source = source_of(Rule(("v",), ("lr", "keep"), "v = keep * v + g; p = p - lr * v"))
        >>> print(source.split("for (long long j")[1].split("}")[0])
         = entry; j < width; j += entries) {
                const float v0 = (float)c0;
                const float v1 = (float)c1;
                const float v2 = p[at * width + j];
                const float v3 = g[i * width + j];
                const float v4 = state[(at * slots + 0) * width + j];
                const float v5 = ((v1 * v4) + v3);
                const float v6 = (v2 - (v0 * v5));
                p[at * width + j] = v6;
                state[(at * slots + 0) * width + j] = v5;
    """
    kernels = [source_in(_language(kind), rule).replace("{name}", f"{name}_{kind}") for kind in FUNCTIONS]
    return "".join(kernels)


def _language(kind: str) -> Language:
    """CUDA C++ with "float" or "double"."""
    return Language(
        kernel=KERNEL.replace("FLOAT", kind),
        passed=", double c{0}",
        constant=f"({kind})c{{0}}",
        parameter="p[at * width + j]",
        gradient="g[i * width + j]",
        slot="state[(at * slots + {0}) * width + j]",
        value=f"const {kind} v{{0}} = {{1}};",
        store="{0} = v{1};",
        indent=12,
        expression=partial(cuda_expression, functions=FUNCTIONS[kind]),
    )
