"""How a batch is computed: the kernel language, the interpreter of programs, and what each device does with a step.

Sees arrays and offsets only.
"""
