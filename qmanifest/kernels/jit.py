"""How kernels are compiled: without the GIL, as written, and kept on disk."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numba import njit
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., object]")


def jit(function: Function) -> Function:
    """Compile a function when it is first called with arguments of new types.

    `error_model="numpy"`: a division by zero gives infinity, where Python's check would
    keep a loop from being vectorised. No `fastmath`: every operation is rounded as
    float32 is, so that results are those of the reference. The compiled code is kept
    next to the module, else in the user's cache; where neither can be written, it is
    compiled anew in every process.
    """
    try:
        compiled = njit(nogil=True, error_model="numpy", cache=True)(function)
        _depend_on_all_kernels(compiled)
    except RuntimeError:  # numba found no folder to keep it in
        compiled = njit(nogil=True, error_model="numpy")(function)
    return cast("Function", compiled)


def _depend_on_all_kernels(compiled: Any) -> None:  # noqa: ANN401 - numba's dispatcher
    """Have compiled code forgotten when any kernel changes.

    numba looks at the time and size of the one file that a function stands in, and not
    at those whose functions it calls: an update could run half of the old code.
    """
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    stamp = getattr(kept, "_source_stamp", None)
    if kept is not None and stamp is not None:
        kept._source_stamp = (stamp, _fingerprint())  # noqa: SLF001 - no public way


@cache
def _fingerprint() -> str:
    """Digest the source of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def emitted(describe: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of compiled code of one that says which LLVM instructions it is.

    `describe` is called with the types of the arguments, and gives a signature and the
    function that writes the instructions.
    """
    return cast("Callable[..., Any]", intrinsic(describe))
