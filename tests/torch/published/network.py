"""What there is to say of a network."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple


class Network(NamedTuple):
    """A network as its authors write it: plain PyTorch, for one sample.

    Attributes:
        kind: of structure, and the paper.
        make: of a hidden size, the module.
        samples: of a generator of numbers, how many, and about how many nodes each has: arguments of `forward`.
        loss: of what `forward` returned, and its arguments.
        marked: classes and names of methods that are worth a mark as a cell.
    """

    kind: str
    make: Callable[[int], Any]
    samples: Callable[[Any, int, int], list[tuple[Any, ...]]]
    loss: Callable[..., Any]
    marked: tuple[tuple[type, str], ...] = ()

    def with_cells(self, module: Any, cell: Callable[[Any], Any]) -> Any:
        """Another module with the same parameters, whose methods that are worth a mark have one."""
        found = copy.deepcopy(module, {id(p): p for p in module.parameters()})
        methods: dict[type, dict[str, Any]] = {}
        for kind, name in self.marked:
            methods.setdefault(kind, {})[name] = cell(getattr(kind, name))
        classes = {kind: type(kind.__name__, (kind,), of) for kind, of in methods.items()}
        for part in found.modules():
            part.__class__ = classes.get(type(part), type(part))
        return found

    def losses(self, module: Any, samples: list[tuple[Any, ...]]) -> Any:
        """Those of each sample, one after the other."""
        return [self.loss(module(*sample), *sample) for sample in samples]

    def losses_together(self, batched: Any, samples: list[tuple[Any, ...]]) -> Any:
        """The same by what `Batched` makes of the module."""
        results = batched(*map(list, zip(*samples, strict=True)))
        return [self.loss(result, *sample) for result, sample in zip(results, samples, strict=True)]
