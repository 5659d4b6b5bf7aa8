"""PyTorch's functions of lazy tensors, by family, with PyTorch's meaning; importing this fills the table of them."""

from edbatch.torch.functions import (  # noqa: F401  # noqa: F401
    bodies,
    constants,
    elementwise,
    index,
    layers,
    losses,
    matrices,
    recurrent,
    reduce,
    shape,
)
