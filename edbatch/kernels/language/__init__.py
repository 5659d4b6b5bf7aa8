"""The language in which kernels are written once, for every device and dtype.

    ir           what a kernel is: loads, computations, reductions and stores over the entries of a row
    expressions  scalar expressions as text, parsed
    functions    the table of scalar functions, and what they mean
    elementary   how a CPU computes them; what differs for float32 and float64 is in single and double
    build        from expressions to instructions
    given        how sizes, places and strides are passed to a kernel
    analysis     the loop nest: which loops and passes there are, and which value is computed in which of them
    values       the values of a kernel, whatever the language
    llvm, cuda   the two languages: loops in LLVM's language for the CPU, threads in CUDA C++ for GPUs

It knows neither graphs nor plans; who makes machine code of the texts is `kernels.cpu.machine_code` and the GPU's
driver.
"""
