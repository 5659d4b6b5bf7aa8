"""Machine code of kernels: LLVM's text, compiled once for all processes and kept in the user's cache folder."""

# mypy: disable-error-code="import-untyped,no-untyped-call"

from __future__ import annotations

import hashlib
import threading
from functools import cache
from typing import Any

from edbatch.base.locking import signals_deferred
from edbatch.base.stopwatch import compiling
from edbatch.compiling.cache import environment, keep, kept
from edbatch.kernels.language import llvm
from edbatch.kernels.language.ir import Kernel

_lock = threading.Lock()


@cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(llvm.get_process_triple())


@cache
def _processor() -> tuple[str, str]:
    """The name of this one, and what it can do. (Settings of Numba's may have it compile for another.)"""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine() -> Any:
    """As Numba's: for this processor, code that stays where it is put."""
    reloc = "static" if _target().name.startswith("x86") else "default"
    name, features = _processor()
    return _target().create_target_machine(cpu=name, features=features, opt=3, reloc=reloc, codemodel="jitdefault")


@cache
def _engine() -> Any:
    """Where the code of all kernels of this process lies."""
    import llvmlite.binding as llvm

    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())


def optimized(text: str) -> Any:
    """A module of LLVM's text, as what machine code is made of."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    machine = _machine()
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(2)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


@cache
def address_of(kernel: Kernel) -> int:
    """The address of a kernel, compiled once for all processes.

    It is void f(int64 first, stop, given, scratch), see `language.given`.
    """
    return address_of_text(llvm.source_of(kernel))


def address_of_text(text: str) -> int:
    """The same of LLVM's text, of a function @kernel."""
    import llvmlite.binding as llvm

    with signals_deferred(), compiling, _lock:
        made_of = (environment(), repr(_processor()).encode(), b"kernel", text.encode())
        key = hashlib.blake2b(b"".join(made_of), digest_size=20).digest()
        name = f"kernel_{key.hex()}"
        found = kept(key)
        if found is None:
            found = _machine().emit_object(optimized(text.replace("@kernel", f"@{name}")))
            keep(key, found)
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(found))
        engine.finalize_object()
        address: int = engine.get_function_address(name)
        return address
