"""`dynet_config`: what is set before DyNet is imported; here it is in force at once."""

from __future__ import annotations

from typing import Any

from edbatch.dynet import setup

_conf: dict[str, Any] = {}


def set(
    mem: Any = "512", random_seed: int = 0, autobatch: int = 0, profiling: int = 0, weight_decay: float = 0,
    shared_parameters: int = 0, requested_gpus: int = 0, gpu_mask: Any = None,
) -> None:  # fmt: skip
    """Set the seed, the way of batching and the weight decay; memory and profiling are no matter here."""
    _conf.update(
        mem=mem, seed=random_seed, autobatch=autobatch, profiling=profiling, weight_decay=weight_decay,
        shared_params=shared_parameters, requested_gpus=requested_gpus, gpu_mask=gpu_mask or [],
    )  # fmt: skip
    setup.apply(random_seed, autobatch, weight_decay, requested_gpus)


def set_gpu(flag: bool = True) -> None:
    """Refuse a GPU: programs in DyNet's style run on the CPU."""
    if flag:
        raise setup.no_gpu()


def gpu() -> bool | None:
    """Whether there is a GPU; there is none."""
    return False


def get() -> dict[str, Any] | None:
    """What was set; None if nothing was."""
    return _conf or None
