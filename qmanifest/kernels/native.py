"""Compiled code that runs without its compiler: object files, kept on disk.

To import numba and to load what it keeps itself takes longer than to pack a hundred
megabytes. So the machine code of a kernel is kept as an object file of its own, which
llvmlite alone loads; numba is imported only where there is none yet.

Where no file can be written, the code is made anew in every process.
"""

from __future__ import annotations

import ctypes
import re
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import llvmlite.binding as llvm

from qmanifest.kernels.native_files import keep, kept, processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ENTRY: Final = "qmanifest_entry"
"""What the function to call is named in its module."""
_PLACES: Final = 2
"""Arguments before those of the kernel: where its result and its error go."""
_HARMLESS: Final = ("llvm.", "memcpy", "memset", "memmove")
"""Functions that need not be in a module: LLVM's own, and those of every C library."""
_LOCK: Final = Lock()
_ENTRIES: Final[dict[str, Callable[..., bool] | None]] = {}
_ENGINES: Final[list[Any]] = []
"""They own the machine code, so they live as long as the process."""


def entry(
    name: str, arguments: Sequence[Any], build: Callable[[], str]
) -> Callable[..., bool] | None:
    """Give a kernel to call, from what is kept or made anew.

    None where this numba makes code that cannot stand alone; then numba has to run it.

    Args:
        name: of the kernel and the types that it is made for, as part of a file name.
        arguments: what ctypes calls the types of its arguments.
        build: makes its LLVM module, with a function `ENTRY` in it: as numba compiles
            one, it takes the places of its result and of its error, then the arguments,
            and returns zero if all went well. Its result is 0 or 1, in 64 bits.

    Raises:
        ImportError: there is nothing kept, and numba cannot be imported.

    """
    with _LOCK:
        if name not in _ENTRIES:
            code = kept(name)
            if code is None:
                code = machine_code(build(), len(arguments))
                if code is not None:
                    keep(name, code)
            _ENTRIES[name] = (
                None if code is None else _callable(_loaded(code), arguments)
            )
        return _ENTRIES[name]


def machine_code(module: str, arguments: int) -> bytes | None:
    """Make an object file of an optimized LLVM module, for this processor.

    None where its entry does not take so many arguments, or where it needs what no C
    library has: numba's own functions are not there when the code is loaded, and LLVM
    would end the process.
    """
    parsed = llvm.parse_assembly(module)
    parsed.verify()
    found = len(list(parsed.get_function(ENTRY).arguments))
    if found != _PLACES + arguments or any(_absent(parsed, module)):
        return None
    code: bytes = _machine().emit_object(parsed)
    return code


def _absent(parsed: Any, module: str) -> Iterator[str]:  # noqa: ANN401 - llvmlite has no types
    """List what a module uses and does not have."""
    for each in (*parsed.functions, *parsed.global_variables):
        if each.is_declaration and not each.name.startswith(_HARMLESS):
            name = re.escape(each.name)
            if len(re.findall(rf"@\"?{name}(?![\w.$])", module)) > 1:
                yield each.name


def _callable(address: int, arguments: Sequence[Any]) -> Callable[..., bool]:
    """Wrap machine code; a call lets go of the interpreter."""
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *arguments
    )
    native = kind(address)

    def call(*given: object) -> bool:
        answer, error = ctypes.c_int64(), ctypes.c_void_p()
        if native(ctypes.addressof(answer), ctypes.addressof(error), *given):
            raise RuntimeError("a kernel failed")
        return bool(answer.value)

    return call


def _loaded(code: bytes) -> int:
    """Load an object file, and give the address of its entry."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    address: int = engine.get_function_address(ENTRY)
    return address


def _machine() -> Any:  # noqa: ANN401 - llvmlite has no types
    """Describe this processor, the way numba does."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    cpu, features = processor()
    return target.create_target_machine(
        cpu=cpu,
        features=features,
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )
