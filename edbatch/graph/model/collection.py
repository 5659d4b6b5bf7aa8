"""The parameters of a model."""

from __future__ import annotations

import copy
import os
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np

from edbatch.base.locking import lock, signals_deferred
from edbatch.base.numbers import checked_integer
from edbatch.base.table import Table
from edbatch.devices import Device, opened_device
from edbatch.errors import EdBatchError, MissingNameError, checked_flag, shown
from edbatch.graph.hints import COLLECTION, explaining, with_hints
from edbatch.graph.model.checkpoint import TRAINER, Checkpoint, Resumable, Savable, load_checkpoint, save_checkpoint
from edbatch.graph.model.parameters import LookupParameters, Parameter, shareable
from edbatch.graph.record import checked_shape
from edbatch.graph.spec import MOST_AXES, float_dtype
from edbatch.init import initial_value


class _Names(dict[str, Parameter]):
    """Parameters by name, to which others are only ever added; it can be referred to weakly, as no plain dictionary."""

    def listed(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`."""
        return [name for name in self if name.startswith(prefix)]


@with_hints(COLLECTION)
class ParameterCollection:
    """The parameters of a model.

    It is iterated over its parameters, in the order in which they were added; they are found by name as in a
    dictionary: `model["W"]` (if there is none an EdBatchError that is also a KeyError), `model.get("W")`,
    `"W" in model`, `dict(model)`, `model.items()`.

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
        >>> W, embed = model.add_parameters((5, 64), name="W"), model.add_lookup_parameters((1000, 64), name="embed")
        >>> [parameter.name for parameter in model], "W" in model
        (['W', 'embed'], True)
    """

    def __init__(self, seed: int = 0, dtype: Any = "float32", device: str | Device | None = None) -> None:
        self.dtype = float_dtype(dtype)
        self.device = opened_device(device)
        # As many bits as NumPy takes entropy from.
        self._random = np.random.default_rng(checked_integer("ParameterCollection", "seed", seed, 0, 2**128 - 1))
        self._parameters = _Names()  # of the whole model
        self._prefix = ""

    def sub(self, name: str) -> ParameterCollection:
        """The part of the model whose parameters' names begin with `name.`: a collection like any other.

        What is added to it is added to the model under that prefix, so that a layer may be used twice. It is saved,
        loaded and looked up without the prefix; optimizers take it, to train just this part.

        Raises:
            EdBatchError: `name` is no name.

        Example:
            >>> import edbatch as eb
            >>> model = eb.ParameterCollection()
            >>> encoder = eb.models.LSTM(model.sub("encoder"), 3, 4)
            >>> encoder.W.name, list(model.sub("encoder").keys())
            ('encoder.lstm.W', ['lstm.W', 'lstm.U', 'lstm.b'])
        """
        part = copy.copy(self)
        part._prefix = f"{self._prefix}{_checked_name(name)}."
        return part

    def free_name(self, name: str) -> str:
        """`name`, or `name2`, `name3`, ...: the first that no parameter has, alone or as a prefix.

        Example:
            >>> import edbatch as eb
            >>> model = eb.ParameterCollection()
            >>> [eb.models.LSTM(model, 3, 4).W.name for _ in range(2)], model.free_name("lstm")
            (['lstm.W', 'lstm2.W'], 'lstm3')
        """
        number, found = 1, _checked_name(name)
        parts = found.count(".") + 1
        taken = {".".join(known.split(".", parts)[:parts]) for known in self.keys()}  # once: a layer may have thousands
        while found in taken:
            number += 1
            found = f"{name}{number}"
        return found

    def add_parameters(
        self, shape: int | tuple[int, ...], name: str | None = None, init: str | float | Any = "glorot"
    ) -> Parameter:
        """Add an array of `shape`.

        Args:
            shape: an int means a vector.
            name: unique in the collection; policies and checkpoints find the parameter by it. Default `p0`, `p1`, ...
            init: "glorot" (uniform in +-sqrt(6 / (rows + columns)); a vector starts at 0), "uniform" (+-0.1), "normal"
                (standard deviation 1), "zeros", "ones", "xavier_uniform", "xavier_normal", "kaiming_uniform",
                "kaiming_normal" (also as "glorot_..." and "he_..."), "orthogonal"; an object of `eb.init`, or any
                function of a `numpy.random.Generator` and the shape; a number, or an array of `shape` (of any library,
                see `edbatch.from_dlpack`).

        Raises:
            EdBatchError: a bad shape, a name that is taken, an unknown `init`, or one that does not give `shape`.

        Example:
            >>> import edbatch as eb
            >>> eb.ParameterCollection().add_parameters(3, init=lambda rng, shape: rng.integers(1, 2, shape)).value()
            array([1., 1., 1.], dtype=float32)
        """
        return self._add(Parameter, shape, name, init)

    def add_lookup_parameters(
        self, shape: tuple[int, ...], name: str | None = None, init: str | float | Any = "uniform"
    ) -> LookupParameters:
        """Add a table of shape (entries, *shape of one entry); `init` as in `add_parameters`."""
        table = self._add(LookupParameters, shape, name, init)
        assert isinstance(table, LookupParameters)
        return table

    def share(self, array: Any, name: str | None = None, lookup: bool = False) -> Parameter:
        """Add a parameter that lies in memory of somebody else's: nothing is copied, and both see what either writes.

        Who writes to the memory says so by `Parameter.touch`. Cells never move it, so that several small matrices are
        several products; `Parameter.move` has it lie elsewhere.

        Args:
            array: writable, of the collection's dtype and device (NumPy's, of DLPack, on a GPU CuPy's), its entries
                side by side, by rows or, of a matrix, by columns.
            lookup: whether it is a table of rows (`LookupParameters`), whose gradients are kept by rows.

        Raises:
            EdBatchError: the array is of another dtype, device or layout, or read-only; a name that is taken.

        Example:
            >>> import numpy as np, edbatch as eb
            >>> array = np.ones(2, np.float32)
            >>> W = eb.ParameterCollection(device="cpu").share(array, "W")
            >>> W.set_value([1, 2])
            >>> array
            array([1., 2.], dtype=float32)
        """
        by_rows = checked_flag("share: lookup", lookup)
        found = shareable(array, self.device, self.dtype, by_rows, "share")
        full = self._new_name(name)
        self._expect_new(full, found.shape)
        kind = LookupParameters if lookup else Parameter
        parameter = self._parameters[full] = kind(full, found, self.device, shares=True)
        parameter.is_shared = True
        return parameter

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        trainer: Resumable | None = None,
        policy: Savable | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a checkpoint (a safetensors file), replacing the file in one step.

        It also holds which parameters are frozen, and how far the sequence is from which dropout draws (see
        `edbatch.seed`). Whatever interrupts it - a kill, a full disk - the previous file stays as it was (a kill may
        leave a hidden file `.m.safetensors.*.part`, which the next save deletes). Parameters are found by their names.

        Args:
            trainer: its state is put into the file.
            policy: is written beside the file, `m.policy.json` for `m.safetensors`.
            metadata: what JSON can hold: the epoch, `rng.bit_generator.state`, the model's sizes.

        Raises:
            EdBatchError: the file cannot be written, or `metadata` is not JSON.

        Example:
            >>> import edbatch as eb, pathlib, tempfile
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.safetensors"
            >>> model = eb.ParameterCollection(seed=0)
            >>> model.save(path, metadata={"epoch": 3})
            >>> model.load(path).metadata
            {'epoch': 3}
        """
        save_checkpoint(path, self, trainer, policy, metadata)

    def load(
        self, path: str | os.PathLike[str], *, trainer: Resumable | None = None, strict: bool = True
    ) -> Checkpoint:
        """Read a checkpoint; other safetensors files of float32 or float64 will do.

        Parameters that were frozen when it was saved are frozen. Others that are frozen here stay so, unless a trainer
        is given: then the run goes on as it was. (Files of other libraries freeze nothing.)

        Args:
            trainer: takes over its state from the file; its hyper-parameters stay as they are. The run that was saved
                goes on: dropout draws what it would have drawn there (see `edbatch.seed`).
            strict: whether names, shapes and dtypes must be the same on both sides. If not, what fits is loaded.

        Returns:
            The metadata, the path of the policy file if there is one, and with `strict=False` what did not fit and why.

        Raises:
            EdBatchError: the file is missing, truncated or damaged, or does not fit; the message says all that differs.
                Nothing has been changed.
        """
        return load_checkpoint(path, self, trainer, checked_flag("ParameterCollection.load: strict", strict))

    @explaining
    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        with lock, signals_deferred():
            for parameter in self:
                parameter.zero_grad()

    def freeze(self, frozen: bool = True) -> None:
        """Freeze all parameters that are there now, see `Parameter.freeze`; `freeze(False)` ends that."""
        flag = checked_flag("ParameterCollection.freeze", frozen)
        for parameter in self:
            parameter.freeze(flag)

    def count(self, frozen: bool = True) -> int:
        """The number of entries of all parameters, or of those that are not `frozen`."""
        every = checked_flag("ParameterCollection.count: frozen", frozen)
        return sum(parameter.spec.size for parameter in self if every or not parameter.frozen)

    def summary(self) -> Table:
        """All parameters with their shapes and numbers of entries; `print` it, or let a notebook show it.

        Example:
            >>> import edbatch as eb
            >>> model = eb.ParameterCollection()
            >>> W, b = model.add_parameters((5, 64), name="W"), model.add_parameters(5, name="b")
            >>> b.freeze()
            >>> print(model.summary())  # doctest: +NORMALIZE_WHITESPACE
            name       shape    dtype      entries
            ---------  -------  -------  ---------  ------
            W          (5, 64)  float32        320
            b          (5,)     float32          5  frozen
            (total)                            325
            (trained)                          320
        """
        rows = [
            (name, str(x.shape), str(x.dtype), f"{x.spec.size:,}", "frozen" if x.frozen else "")
            for name, x in self.items()
        ]
        all, trained = self.count(), self.count(frozen=False)
        rows.append(("(total)", "", "", f"{all:,}", ""))
        if trained < all:
            rows.append(("(trained)", "", "", f"{trained:,}", ""))
        return Table(("name", "shape", "dtype", "entries", ""), rows, ("left", "left", "left", "right", "left"))

    def keys(self) -> KeysView[str]:
        """The names of the parameters; of a part of a model without its prefix."""
        return self._here().keys()

    def values(self) -> ValuesView[Parameter]:
        """The parameters."""
        return self._here().values()

    def items(self) -> ItemsView[str, Parameter]:
        """Names and parameters."""
        return self._here().items()

    def _here(self) -> dict[str, Parameter]:
        begin = len(self._prefix)
        return {name[begin:]: self._parameters[name] for name in self._parameters.listed(self._prefix)}

    def __iter__(self) -> Iterator[Parameter]:
        return map(self._parameters.__getitem__, self._parameters.listed(self._prefix))

    def __len__(self) -> int:
        return len(self._parameters.listed(self._prefix))

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return self._prefix + item in self._parameters
        return any(parameter is item for parameter in self)

    def __getitem__(self, name: str) -> Parameter:
        found = self.get(name)
        if found is None:
            raise MissingNameError(f"no parameter {shown(name)}; there are {', '.join(self.keys()) or 'none'}")
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter of this name, or `default` if there is none, as in a dictionary."""
        return self._parameters.get(self._prefix + name, default) if isinstance(name, str) else default

    def __repr__(self) -> str:
        part = f" of {self._prefix[:-1]!r}" if self._prefix else ""
        return f"ParameterCollection({len(self)} parameters{part}, {self.count():,} entries)"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _add(self, kind: type[Parameter], shape: Any, name: str | None, init: Any) -> Parameter:
        full = self._new_name(name)
        place = f"parameter {full!r}"
        size = checked_shape(place, shape)
        self._expect_new(full, size)
        if kind is LookupParameters and not size:
            raise EdBatchError(f"{place}: expected a shape of at least one axis, got {shown(shape)}")
        try:
            array = initial_value(init, self._random, size, self.dtype, place)
        except EdBatchError:
            raise
        except MemoryError as error:
            raise EdBatchError(f"{place}: expected a shape that fits into memory ({error})") from error
        parameter = self._parameters[full] = kind(full, array, self.device)
        return parameter

    def _new_name(self, name: str | None) -> str:
        if name is None:
            free = (f"p{number}" for number in range(len(self), 2 * len(self) + 1))
            name = next(found for found in free if found not in self)
        return self._prefix + _checked_name(name)

    def _expect_new(self, full: str, size: tuple[int, ...]) -> None:
        if len(size) > MOST_AXES:
            raise EdBatchError(f"parameter {full!r}: expected a shape of at most {MOST_AXES} axes, got {shown(size)}")
        if full in self._parameters:
            raise EdBatchError(
                f"parameter {full!r} exists already; expected a name of its own, or a collection of its own: "
                f"model.sub('...') has its own names"
            )


def _checked_name(name: Any) -> str:
    """A name that checkpoints and policies can hold."""
    if not isinstance(name, str):
        raise EdBatchError(f"parameter {shown(name)}: expected a name, got {type(name).__name__}")
    if not name or not name.isprintable() or name == "__metadata__":
        raise EdBatchError(f"parameter {name!r}: expected a name that files can hold")
    if any(part.startswith(TRAINER) for part in name.split(".")):  # of any part of a model, which may be saved alone
        raise EdBatchError(f"parameter {name!r}: names that begin with {TRAINER!r} are the trainer's in checkpoints")
    return name
