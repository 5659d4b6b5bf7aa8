"""EdBatch inside PyTorch: networks of one sample as modules, whose mini-batches run in batches.

`Module` makes an `nn.Module` of a function of one sample that is written with EdBatch. It takes n samples and gives n
ordinary tensors, with gradients: any optimizer, scheduler, loss and layer of PyTorch goes with it. `op` makes an op of
graphs of a module of PyTorch's.
"""

from edbatch.torch.inputs import input
from edbatch.torch.module import Module
from edbatch.torch.ops import op

__all__ = ["Module", "input", "op"]
