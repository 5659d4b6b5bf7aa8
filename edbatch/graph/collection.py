"""The parameters of a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.devices import Device, opened_device
from edbatch.errors import EdBatchError
from edbatch.exclusive import Whole, lock
from edbatch.graph.exchange import from_dlpack
from edbatch.graph.parameters import LookupParameters, Parameter
from edbatch.graph.spec import Shape, float_dtype

if TYPE_CHECKING:
    from edbatch.graph.checkpoint import Checkpoint, Resumable, Savable


class ParameterCollection:
    """The parameters of a model.

    Args:
        seed: of the initial values; equal seeds and equal order of creation give equal values.
        dtype: float32 or float64, of all its parameters.
        device: where they live ("cpu", "cuda", "cuda:1"); None: on the current device, see `edbatch.device`. Graphs
            that read them run there.

    Raises:
        EdBatchError: the device is missing, or a library for it.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection(seed=0)
        >>> W = model.add_parameters((5, 64), name="W")
        >>> embed = model.add_lookup_parameters((1000, 64), name="embed")
        >>> [parameter.name for parameter in model]
        ['W', 'embed']
    """

    def __init__(self, seed: int = 0, dtype: Any = "float32", device: str | Device | None = None) -> None:
        self.dtype = float_dtype(dtype)
        self.device = opened_device(device)
        self._random = np.random.default_rng(seed)
        self._parameters: dict[str, Parameter] = {}

    def add_parameters(
        self, shape: int | tuple[int, ...], name: str | None = None, init: str | float | Any = "glorot"
    ) -> Parameter:
        """Add an array of `shape`.

        Args:
            shape: an int means a vector.
            name: unique in the collection; policies and checkpoints find the parameter by it. Default `p0`, `p1`, ...
            init: "glorot" (uniform in +-sqrt(6 / (rows + columns)); a vector starts at 0), "uniform" (+-0.1),
                a number, or an array of `shape` (of any library, see `edbatch.from_dlpack`).

        Raises:
            EdBatchError: a bad shape, a name that is taken, or an unknown `init`.
        """
        return self._add(Parameter, shape, name, init)

    def add_lookup_parameters(
        self, shape: tuple[int, ...], name: str | None = None, init: str | float | Any = "uniform"
    ) -> LookupParameters:
        """Add a table of shape (entries, *shape of one entry); `init` as in `add_parameters`."""
        table = self._add(LookupParameters, shape, name, init)
        assert isinstance(table, LookupParameters)
        return table

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        trainer: Resumable | None = None,
        policy: Savable | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a checkpoint (a safetensors file), replacing the file in one step.

        It also holds how far the sequence is from which dropout draws (see `edbatch.seed`).

        Whatever interrupts it - a kill, a full disk - the previous file stays as it was (a kill may leave a hidden file
        beside it, `.m.safetensors.*`, which may be deleted). Parameters are found by their names: give them names, and
        code may change its classes and their order.

        Args:
            path: where to.
            trainer: its state is put into the file.
            policy: is written beside the file, `m.policy.json` for `m.safetensors`.
            metadata: what JSON can hold: the epoch, `rng.bit_generator.state`, the model's sizes.

        Raises:
            EdBatchError: the file cannot be written, `metadata` is not JSON, or a parameter's name begins with
                `trainer/`.

        Example:
            >>> import edbatch as eb, pathlib, tempfile
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.safetensors"
            >>> model = eb.ParameterCollection(seed=0)
            >>> W = model.add_parameters((2, 3), name="W", init=1.0)
            >>> model.save(path, metadata={"epoch": 3})
            >>> W.set_value(W.value() * 0)
            >>> model.load(path).metadata
            {'epoch': 3}
            >>> W.value().sum()
            np.float32(6.0)
        """
        from edbatch.graph.checkpoint import save_checkpoint

        save_checkpoint(path, self, trainer, policy, metadata)

    def load(
        self, path: str | os.PathLike[str], *, trainer: Resumable | None = None, strict: bool = True
    ) -> Checkpoint:
        """Read a checkpoint; other safetensors files of float32 or float64 will do.

        Args:
            path: what `save` wrote.
            trainer: takes over its state from the file; its hyper-parameters stay as they are. The run that was saved
                goes on: dropout draws what it would have drawn there (see `edbatch.seed`).
            strict: whether names, shapes and dtypes must be the same on both sides. If not, what fits is loaded.

        Returns:
            The metadata, the path of the policy file if there is one, and with `strict=False` what did not fit and why.

        Raises:
            EdBatchError: the file is missing, truncated or damaged, or does not fit; the message says all that differs.
                Nothing has been changed.
        """
        from edbatch.graph.checkpoint import load_checkpoint

        return load_checkpoint(path, self, trainer, strict)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        with lock, Whole():
            for parameter in self:
                parameter.zero_grad()

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __len__(self) -> int:
        return len(self._parameters)

    def __getitem__(self, name: str) -> Parameter:
        try:
            return self._parameters[name]
        except KeyError:
            raise EdBatchError(f"no parameter {name!r}; there are {', '.join(self._parameters) or 'none'}") from None

    def _add(self, kind: type[Parameter], shape: Any, name: str | None, init: Any) -> Parameter:
        size = (shape,) if isinstance(shape, int) else tuple(shape)
        name = f"p{len(self._parameters)}" if name is None else name
        if not all(isinstance(n, int | np.integer) and n > 0 for n in size) or (kind is LookupParameters and not size):
            raise EdBatchError(f"parameter {name!r}: expected a shape of positive integers, got {shape!r}")
        if name in self._parameters:
            raise EdBatchError(f"parameter {name!r} exists already; expected a name of its own")
        size = tuple(int(n) for n in size)
        parameter = self._parameters[name] = kind(name, self._initial(name, size, init), self.device)
        return parameter

    def _initial(self, name: str, shape: Shape, init: Any) -> np.ndarray:
        if isinstance(init, str):
            if init == "glorot":
                bound = np.sqrt(6 / (shape[0] + np.prod(shape[1:]))) if len(shape) > 1 else 0.0
            elif init == "uniform":
                bound = 0.1
            else:
                raise EdBatchError(
                    f"parameter {name!r}: unknown init {init!r}; expected glorot, uniform, a number or an array"
                )
            return self._random.uniform(-bound, bound, shape).astype(self.dtype)
        array = from_dlpack(init, f"parameter {name!r}: init")
        if array.shape not in (shape, ()):
            raise EdBatchError(f"parameter {name!r}: init has shape {array.shape}, expected {shape}")
        return np.array(np.broadcast_to(array, shape), dtype=self.dtype)
