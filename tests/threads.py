"""Whatever is computed, with each number of threads."""

import hashlib

import numpy as np

import edbatch as eb
from edbatch.kernels.cpu import thread_pool

THREADS = 1, 2, 3, 4


def bits_by_threads(run):
    """For each number of threads a digest of the arrays that a function returns; other programs do not matter."""
    found = []
    for threads in THREADS:
        with eb.options(threads=threads), thread_pool.Computing(threads):
            if threads > 1:
                thread_pool._pool.judged(False)
            try:
                arrays = run()
            finally:
                if threads > 1:
                    thread_pool._pool.judged(True)
            found.append(hashlib.sha1(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest())
    return found
