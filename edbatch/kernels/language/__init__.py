"""The language in which kernels are written once, for every device and dtype.

    ir           what a kernel is: loads, computations, reductions and stores over the entries of a row
    expressions  scalar expressions as text, parsed
    functions    the table of scalar functions, and what they mean
    build        from expressions to instructions
    analysis     what is found out about a kernel before it is written in any language
    given        how sizes, places and strides are passed to a kernel
    llvm         kernels for the CPU: text in LLVM's language
    cuda         kernels for GPUs: CUDA C++

It knows neither graphs nor plans; who makes machine code of the texts is `kernels.cpu.machine_code` and the GPU's
driver.
"""
