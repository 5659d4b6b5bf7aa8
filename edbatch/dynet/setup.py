"""Starting up: flags of the command line, `DynetParams`, and the names that unchanged programs import."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from typing import Any

from edbatch.dynet import collection
from edbatch.dynet.checked import probability
from edbatch.dynet.draws import reset_random_seed
from edbatch.dynet.implicit import DynetError, implicit

ERRMSG = "DyNet's programs run on the CPU here; what is to run on a GPU is written with EdBatch's own functions."
HAVE_CUDA = False

#: Policies by the number that `--dynet-autobatch` gives; 0, as batching costs no change of programs: EdBatch's own.
POLICIES = {0: None, 1: "agenda", 2: "depth"}
_WITH_VALUE = ("mem", "seed", "autobatch", "profiling", "weight-decay", "devices", "gpus", "gpu-ids")
_SWITCHES = ("gpu", "viz", "shared-params", "dynamic-mem", "cpu")


def no_gpu() -> DynetError:
    """There is none."""
    return DynetError(ERRMSG)


def apply(seed: int = 0, autobatch: int = 0, weight_decay: float = 0.0, gpus: int = 0, devices: str = "") -> None:
    """Have settings in force; a seed of 0 is any."""
    if gpus or "GPU" in devices.upper():
        raise no_gpu()
    if int(autobatch) not in POLICIES:
        raise DynetError(f"autobatch={autobatch}: expected 0 (EdBatch's choice), 1 (agenda) or 2 (depth)")
    reset_random_seed(int(seed) or secrets.randbelow(2**31))
    collection.DEFAULT.lam = probability("--dynet-weight-decay", weight_decay)
    if implicit.policy != POLICIES[int(autobatch)]:
        implicit.policy = POLICIES[int(autobatch)]
        if implicit.graph is not None:
            implicit.close()
            implicit.opened()


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
        if name in _WITH_VALUE:
            found[name] = value if has_value else next(rest, "")
        elif name in _SWITCHES:
            found[name] = "1"
        else:
            raise DynetError(f"unknown flag --dynet-{name}")
    arguments[:] = kept
    return found


def from_flags(found: Mapping[str, str]) -> None:
    """Have flags in force; memory, profiling and shared parameters are no matter here."""
    if {"gpu", "gpu-ids"} & found.keys():
        raise no_gpu()
    if found:
        try:
            numbers = [int(found.get(name, 0)) for name in ("seed", "autobatch", "gpus")]
            decay = float(found.get("weight-decay", 0))
        except ValueError as error:
            raise DynetError(f"DyNet's flags: {error}") from None
        apply(numbers[0], numbers[1], decay, numbers[2], found.get("devices", ""))


def install() -> None:
    """Have `import dynet`, `import _dynet` and `import dynet_config` find this module from now on."""
    import edbatch.dynet as module
    from edbatch.dynet import config

    sys.modules["dynet"] = sys.modules["_dynet"] = module
    sys.modules["dynet_config"] = module.dynet_config = config


class DynetParams:
    """Settings that are made one by one, and put in force by `init`."""

    def __init__(self) -> None:
        self._seed, self._autobatch, self._decay, self._gpus = 0, 0, 0.0, 0

    def from_args(self, shared_parameters: Any = None) -> None:
        """Take DyNet's flags of the command line."""
        found = flags(sys.argv)
        self._seed, self._autobatch = int(found.get("seed", 0)), int(found.get("autobatch", 0))
        self._decay = float(found.get("weight-decay", 0))

    def from_config(self, conf: Mapping[str, Any]) -> None:
        """Take what `dynet_config.get` gives."""
        self._seed, self._autobatch = conf.get("seed", 0), conf.get("autobatch", 0)
        self._decay, self._gpus = conf.get("weight_decay", 0.0), conf.get("requested_gpus", 0)

    def init(self) -> None:
        """Have the settings in force."""
        apply(self._seed, self._autobatch, self._decay, self._gpus)

    def set_random_seed(self, random_seed: int) -> None:
        """Set the seed."""
        self._seed = random_seed

    def set_autobatch(self, autobatch: bool) -> None:
        """Set the way of batching."""
        self._autobatch = int(autobatch)

    def set_weight_decay(self, weight_decay: float) -> None:
        """Set the weight decay."""
        self._decay = weight_decay

    def set_requested_gpus(self, requested_gpus: int) -> None:
        """Ask for GPUs, of which there is none."""
        self._gpus = requested_gpus

    def set_gpu_mask(self, gpu_mask: Any) -> None:
        """Ask for GPUs, of which there is none."""
        self._gpus = sum(gpu_mask)

    def set_mem(self, mem: Any) -> None:
        """No matter here."""

    def set_profiling(self, profiling: int) -> None:
        """No matter here."""

    def set_shared_parameters(self, shared_parameters: bool) -> None:
        """No matter here."""

    def set_cpu_mode(self) -> None:
        """No matter here."""


def init(shared_parameters: Any = None) -> None:
    """Have DyNet's flags of the command line in force."""
    from_flags(flags(sys.argv))


def init_from_params(params: DynetParams) -> None:
    """Have settings in force."""
    params.init()


class DeviceInfo:
    """What is known of a device."""

    def __init__(self, name: str, device_id: int = -1, device_type: str = "CPU") -> None:
        self.name, self.device_id, self.device_type = name, device_id, device_type


def available_devices() -> list[str]:
    """The names of the devices: there is one."""
    return ["CPU"]


def get_device_info(name: str) -> DeviceInfo:
    """What is known of a device."""
    if name != "CPU":
        raise DynetError(f"Invalid device name: {name}")
    return DeviceInfo(name)
