"""Settings of the compiler, made when a kernel is about to be compiled: vector instructions in fused kernels.

What LLVM cannot see to lie apart it checks at run time, and gives up vector instructions where that takes more than a
few checks: 17 ns instead of 3 an entry of a TreeLSTM's derivative, which writes to six places. And it checks once
for all rows, not row by row, so that reading and writing parts of the same rows looks like an overlap: 15 ns instead of
2. The settings are the process's: other code that Numba compiles later is checked the same way.
"""

# mypy: disable-error-code="import-untyped"

import llvmlite.binding as llvm

llvm.set_option("edbatch", "-runtime-memory-check-threshold=1000")
llvm.set_option("edbatch", "-hoist-runtime-checks=false")
