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
    from edbatch.kernels.call import Call, Layout
    from edbatch.kernels.recipe import Compute, Load, Recipe, Store
    from scripts.gpu.registers import described

    assert described(Call("dot", "", (), (Layout((3,), (1,)),) * 2, Layout((), ()))) == "dot of (3,)"
    recipe = Recipe(2, (Load(0), Load(0, 1), Compute("{0} * {1}", (0, 1))), (Store(2, 1),))
    assert described(recipe) == "fused: 2 reads, 1 ops, 1 writes"
