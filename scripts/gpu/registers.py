"""What GPU kernels take of a processor, as their compiler says: registers, spills, shared memory, and so occupancy.

Nothing is measured, and no GPU is needed: NVRTC compiles, with CuPy's options, the kernels that are written by hand,
the optimizers' and those that models of hidden size 256 generate when they are trained on a driver that runs nothing
(that of `scripts.gpu.host`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import edbatch as eb
from edbatch.experiments.peers.tasks import MODELS
from edbatch.kernels.cuda.backend import source_of
from edbatch.kernels.cuda.geometry import THREADS
from edbatch.kernels.cuda.source import rows
from edbatch.kernels.language.ir import Compute, Kernel, Load
from edbatch.training.rule import kernel_of
from scripts import data_folder
from scripts.bench.report import Tables, command
from scripts.gpu.host import nothing_runs
from tests.kernels import nvrtc

CAPABILITIES = (80, 90, 100)  # A100, H100, B200
OPTIMIZERS = (eb.SGD, eb.Momentum, eb.Adagrad, eb.RMSProp, eb.Adadelta, eb.Adam, eb.AMSGrad)
# Of a multiprocessor of any of these: registers, threads, warps that get registers in units of 8 a thread.
REGISTERS, RESIDENT = 65536, 2048


def occupancy(registers: int, threads: int) -> float:
    """The part of a multiprocessor's threads that can be resident, in blocks of so many.

    Shared memory is no limit here: eight blocks of these kernels take a twentieth of what there is.
    """
    allocated = -(-registers // 8) * 8 * threads
    return min(RESIDENT // threads, REGISTERS // allocated) * threads / RESIDENT


def described(kernel: Kernel) -> str:
    """What a generated kernel does."""
    reads = sum(isinstance(step, Load) for step in kernel.instructions)
    ops = sum(isinstance(step, Compute) for step in kernel.instructions)
    return f"fused: {reads} reads, {ops} ops, {len(kernel.stores)} writes"


def generated(hidden: int) -> Iterator[tuple[str, Kernel]]:
    """Kernels of models, each once, where it is first used."""
    nothing_runs()
    device = eb.device("cuda")
    made = device.backend._made
    with device:
        for task in (kind(data_folder()) for kind in MODELS.values()):
            network = task.network(eb.ParameterCollection(seed=0), hidden)
            (samples,) = task.mini_batches(10, 1)
            for when in ("forward", "training"):
                before = len(made)
                with eb.Graph() as graph:
                    loss = eb.sum([network.loss(*sample) for sample in samples])
                if when == "forward":
                    graph.run()
                else:
                    loss.backward()
                for kernel in list(made)[before:]:
                    yield f"{task.name}, {when}", kernel


def table(sources: dict[str, str]) -> list[dict[str, Any]]:
    """A row for each kernel for float32 of some modules, which are named; by the compute capability."""
    found: list[dict[str, Any]] = []
    for module, source in sources.items():
        by_capability = [nvrtc.resources(capability, source) for capability in CAPABILITIES]
        for name in reversed(by_capability[0]):
            if name.endswith("_double"):
                continue
            threads = 1024 if name.startswith("add_all") else THREADS
            here = [resources[name] for resources in by_capability]
            found.append(
                {
                    "kernel": module if name == "kernel" else name.removesuffix("_float"),
                    "registers": " / ".join(str(x.registers) for x in here),
                    "occupancy, %": " / ".join(f"{100 * occupancy(x.registers, threads):.0f}" for x in here),
                    "spilled bytes": max(x.spilled + x.stack for x in here),
                    "shared bytes": max(x.shared for x in here),
                }
            )
    return found


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    updates = {kind.__name__: kernel_of(kind.rule, "float32", long=True) for kind in OPTIMIZERS}
    of_models = {
        f"{where}: {described(kernel)}": source_of({"kernel": kernel}) for where, kernel in generated(options.hidden)
    }
    return {
        "Kernels written by hand": table({"": rows()}),
        "Updates": table({"": source_of(updates)}),
        "Kernels generated for models": table(of_models),
    }


main = command(__doc__, tables, hidden={"type": int, "default": 256, "help": "size of the models' states"})

if __name__ == "__main__":
    main()
