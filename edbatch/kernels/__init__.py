"""How a batch is computed: the NumPy backend, gathers, fused element-wise kernels (for the CPU, and as CUDA source).

Sees arrays and offsets only.
"""
