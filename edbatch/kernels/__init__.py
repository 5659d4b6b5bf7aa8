"""How a batch is computed: the NumPy backend, gathers, fused element-wise kernels.

Sees arrays and offsets only.
"""
