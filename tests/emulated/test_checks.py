"""Faults of kernels that may show on a GPU, or not: each kind is found, and named; and none where there is none."""

from tests.emulated.libraries import with_checks

pytestmark = with_checks

# Each kernel is launched with two blocks of 64 threads, on 128 numbers.
RIGHT = """
    __shared__ float parts[64];
    parts[threadIdx.x] = x[at];
    __syncthreads();
    const float value = parts[63 - threadIdx.x] + over_row(x[at], Add()) + __shfl_xor_sync(0xffffffffu, x[at], 5);
    __syncthreads();
    parts[threadIdx.x] = value;
    x[at] = parts[threadIdx.x];
"""
FAULTS = {
    "of a missing barrier": (
        RIGHT.replace("__syncthreads();\n    const", "const"),
        "has a race: it reads 4 bytes that thread .* of block [01] writes, at .*kernel.cu:4$",
    ),
}
