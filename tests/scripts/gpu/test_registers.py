"""How much of a processor kernels can fill, by their registers."""

import pytest

pytest.importorskip("torch", reason="the extra bench")


@pytest.mark.parametrize(
    ("registers", "threads", "part"),
    [(24, 256, 1), (32, 256, 1), (33, 256, 0.75), (40, 256, 0.75), (41, 256, 0.625), (64, 256, 0.5), (90, 256, 0.25),
     (255, 256, 0.125), (32, 1024, 1), (33, 1024, 0.5), (64, 1024, 0.5), (65, 1024, 0)],
)  # fmt: skip
def test_occupancy(registers, threads, part):
    """As in NVIDIA's occupancy calculator."""
    from scripts.gpu.registers import occupancy

    assert occupancy(registers, threads) == part


def test_kernels_are_described():
    from edbatch.kernels.language.ir import NEXT, Compute, Kernel, Load, Place, Store
    from scripts.gpu.registers import described

    steps = (Load(0, (NEXT,)), Load(1, (NEXT,)), Compute("multiply", (0, 1)))
    kernel = Kernel(1, 0, (Place(),) * 3, steps, (Store(2, 2, (NEXT,)),))
    assert described(kernel) == "fused: 2 reads, 1 ops, 1 writes"
