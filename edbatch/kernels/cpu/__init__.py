"""A CPU as a device: NumPy's arrays, BLAS, kernels as machine code, and the interpreter of programs."""
