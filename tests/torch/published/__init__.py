"""Published networks with code for one sample, in their authors' style, by name."""

from tests.torch.published import (
    adjacency,
    constituency,
    crf,
    dependency,
    lattice,
    messages,
    modules,
    programs,
    shapes,
    spinn,
    stack,
)

NETWORKS = {
    module.__name__.rpartition(".")[2]: module.NETWORK
    for module in (
        dependency, constituency, lattice, modules, spinn, stack, programs, messages, adjacency, shapes, crf,
    )
}  # fmt: skip
