"""The machine code of one compiled function: LLVM optimises every function once, not again for each of its callers.

Numba links all that a function calls into its module, optimises the module, and makes machine code of it: what lies at
the bottom of six functions is optimised and made into machine code seven times. Here callees that are too large to be
inlined are linked after that, as they are, and machine code is made only of what is called from outside.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,misc"

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numba  # noqa: F401 (as a whole, and first: threads may be importing it)
from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock, require_global_compiler_lock

from edbatch.base.blocks import contextmanager

# Instructions. LLVM inlines functions of up to about 50 (its threshold is 250, at 5 each), and few larger ones.
LARGE = 100


class CodeLibrary(JITCodeLibrary):
    """The code of one function, and of all that it calls.

    There is machine code only of what is asked for by name: not of what only compiled functions call.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._own: Any = None  # optimised, with the callees that it may inline; None: it was loaded from the disk
        self._later: dict[Any, None] = {}  # modules of callees, and of theirs, which are linked as they are
        self._pending = False  # finalized, without machine code

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in _defined(module):
            passes.run(function, builder)

    def finalize(self) -> None:
        """Optimise the function, link its callees, and make machine code of all. Nothing can be added afterwards."""
        require_global_compiler_lock()
        self._raise_if_finalized()
        module = self._final_module
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            if isinstance(library, CodeLibrary) and library._own is not None:
                self._later |= library._later
                if library._own not in library._later:
                    module.link_in(library._own, preserve=True)
            else:
                module.link_in(library._get_module_for_linking(), preserve=True)
        self._optimize_final_module()
        called = [*self._later]
        self._own = self._without_wrappers()
        if any(_is_large(function) for function in self._own.functions):
            self._later[self._own] = None
        for other in reversed(called):  # callers first: LLVM links what is called by then
            module.link_in(other, preserve=True)
        module.verify()
        self._postpone()

    def _postpone(self) -> None:
        """Have no machine code yet, only what Numba asks for at once: where the addresses of environments go."""
        module = self._final_module
        self._finalize_dynamic_globals()
        self._pending = self._finalized = True
        text = "\n".join(str(one) for one in module.global_variables if one.name.startswith("_ZN08NumbaEnv"))
        environments = llvm.parse_assembly(text)
        environments.triple, environments.data_layout = module.triple, module.data_layout
        self._codegen._add_module(environments)

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """For the disk: the machine code, if there is any."""
        return self.serialize_using_bitcode() if self._pending else super().serialize_using_object_code()

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
        name, kind, data = state
        if kind != "bitcode":
            return super()._unserialize(codegen, state)
        library = cls(codegen, name)
        library.enable_object_caching()
        library._final_module = llvm.parse_bitcode(data)
        library._postpone()
        return library

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function; zero: there is none of this name."""
        self._ensure_finalized()
        if self._pending and any(function.name == name for function in _defined(self._final_module)):
            self._pending = False
            self._finalize_final_module()
        return super().get_pointer_to_function(name)

    def _without_wrappers(self) -> Any:
        """A copy of the module for callers that are compiled: without what Python calls."""
        module = self._final_module.clone()
        kept = []
        for function in _defined(module):
            if function.name.startswith("_ZN7cpython"):
                function.linkage = "internal"
            elif function.linkage == llvm.Linkage.external:
                kept.append(function)
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, self._codegen._pass_builder())
        for function in kept:
            function.linkage = "linkonce_odr"
        return module


def _defined(module: Any) -> Iterator[Any]:
    return (function for function in module.functions if not function.is_declaration)


def _is_large(function: Any) -> bool:
    """Whether LLVM does not inline it anywhere."""
    if any(b"alwaysinline" in attributes for attributes in function.attributes):
        return False
    instructions = (None for block in function.blocks for _ in block.instructions)
    return next(islice(instructions, LARGE, None), function) is None


@contextmanager
def our_libraries(codegen: Any) -> Iterator[None]:
    """In its block, what Numba compiles and loads for this thread is in libraries of ours; other threads wait."""
    with global_compiler_lock:
        before, codegen._library_class = codegen._library_class, CodeLibrary
        try:
            yield
        finally:
            codegen._library_class = before
