"""PyTorch's functions of lazy tensors, by family, with PyTorch's meaning; importing this fills the table of them."""

from edbatch.torch.functions import constants, elementwise, index, layers, losses, matrices, recurrent, reduce, shape

__all__ = ["constants", "elementwise", "index", "layers", "losses", "matrices", "recurrent", "reduce", "shape"]
