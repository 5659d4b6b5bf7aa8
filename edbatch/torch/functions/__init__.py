"""PyTorch's functions of lazy tensors, by family, with PyTorch's meaning; importing this fills the table of them."""

from edbatch.torch.functions import bodies, constants, layers, losses, recurrent, reduce, theirs  # noqa: F401 (others follow)
