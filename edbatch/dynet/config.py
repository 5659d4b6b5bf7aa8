"""Starting up: DyNet's flags and settings. Unchanged programs import this module as `dynet_config`."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping
from typing import Any

from edbatch.dynet.collection import default_decay
from edbatch.dynet.implicit import DynetError, implicit
from edbatch.dynet.inputs import reset_random_seed

#: Policies by the number that `--dynet-autobatch` gives; 0, as batching costs no change of programs: EdBatch's own.
POLICIES = {0: None, 1: "agenda", 2: "depth"}
_WITH_VALUE = ("mem", "seed", "autobatch", "profiling", "weight-decay", "devices", "gpus", "gpu-ids")
_SWITCHES = ("gpu", "viz", "shared-params", "dynamic-mem", "cpu")


def set(
    mem: Any = "512", random_seed: int = 0, autobatch: int = 0, profiling: int = 0, weight_decay: float = 0,
    shared_parameters: int = 0, requested_gpus: int = 0, gpu_mask: Any = None,
) -> None:  # fmt: skip
    """Set the seed (0: any), the way of batching and the weight decay; memory and profiling are no matter here."""
    set_gpu(bool(requested_gpus))
    if int(autobatch) not in POLICIES:
        raise DynetError(f"autobatch={autobatch}: expected 0 (EdBatch's choice), 1 (agenda) or 2 (depth)")
    reset_random_seed(int(random_seed) or secrets.randbelow(2**31))
    default_decay["lam"] = weight_decay
    if implicit.policy != POLICIES[int(autobatch)]:
        implicit.policy = POLICIES[int(autobatch)]
        if implicit.graph is not None:
            implicit.close()
            implicit.opened()


def set_gpu(flag: bool = True) -> None:
    """Refuse a GPU: programs in DyNet's style run on the CPU."""
    if flag:
        raise DynetError("edbatch.dynet runs on the CPU only; on a GPU use EdBatch's own functions")


def gpu() -> bool:
    """Whether there is a GPU; there is none."""
    return False


def flags(arguments: list[str]) -> dict[str, str]:
    """DyNet's flags, which are taken out of a command line; `--dynet-seed 1` and `--dynet_seed=1` are one.

    Example:
        >>> arguments = ["train.py", "--dynet-mem", "512", "--epochs", "3", "--dynet_seed=7"]
        >>> flags(arguments), arguments
        ({'mem': '512', 'seed': '7'}, ['train.py', '--epochs', '3'])
    """
    found: dict[str, str] = {}
    kept, rest = [], iter(arguments)
    for argument in rest:
        name, has_value, value = argument.partition("=")
        name = name.replace("_", "-")
        if not name.startswith("--dynet-"):
            kept.append(argument)
            continue
        name = name.removeprefix("--dynet-")
        if name not in _WITH_VALUE + _SWITCHES:
            raise DynetError(f"unknown flag --dynet-{name}")
        found[name] = "1" if name in _SWITCHES else value if has_value else next(rest, "")
    arguments[:] = kept
    return found


def settings_of(found: Mapping[str, str]) -> dict[str, Any]:
    """What `set` takes, of flags; memory, profiling and shared parameters are no matter here."""
    set_gpu(bool({"gpu", "gpu-ids"} & found.keys()) or "GPU" in found.get("devices", "").upper())
    names = {"seed": "random_seed", "autobatch": "autobatch", "gpus": "requested_gpus"}
    try:
        settings: dict[str, Any] = {name: int(found.get(flag, 0)) for flag, name in names.items()}
        return {**settings, "weight_decay": float(found.get("weight-decay", 0))}
    except ValueError as error:
        raise DynetError(f"DyNet's flags: {error}") from None


def init(shared_parameters: Any = None) -> None:
    """Have DyNet's flags of the command line in force."""
    found = flags(sys.argv)
    if found:
        set(**settings_of(found))


def install() -> None:
    """Have `import dynet`, `import _dynet` and `import dynet_config` find this package from now on."""
    sys.modules["dynet"] = sys.modules["_dynet"] = sys.modules["edbatch.dynet"]
    sys.modules["dynet_config"] = sys.modules[__name__]


def _setter(name: str) -> Callable[[DynetParams, Any], None]:
    def setter(self: DynetParams, value: Any) -> None:
        self._settings[name] = value

    setter.__doc__ = f"Set {name}, see `dynet_config.set`."
    return setter


class DynetParams:
    """Settings that are made one by one, and put in force by `init`."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}

    def from_args(self, shared_parameters: Any = None) -> None:
        """Take DyNet's flags of the command line."""
        self._settings.update(settings_of(flags(sys.argv)))

    def init(self) -> None:
        """Have the settings in force."""
        set(**self._settings)

    set_random_seed, set_autobatch = _setter("random_seed"), _setter("autobatch")
    set_weight_decay, set_requested_gpus = _setter("weight_decay"), _setter("requested_gpus")
    set_mem, set_shared_parameters = _setter("mem"), _setter("shared_parameters")
