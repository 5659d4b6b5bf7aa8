"""The GPU backend: CUDA kernels, and the loop that enqueues them batch after batch."""
