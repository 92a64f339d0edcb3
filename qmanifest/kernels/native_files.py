"""Where machine code of kernels is kept, and when it is taken from there.

A file is taken only whole, and only for the same source of all kernels, processor and
versions. It lies beside Python's own compiled files, else in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import llvmlite.binding as llvm
import numpy as np

from qmanifest.errors import WriteError
from qmanifest.writing.atomic import atomic_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE: Final = Path(__file__).parent
_DIGEST: Final = hashlib.sha256().digest_size


def any_kept() -> bool:
    """Tell whether kernels ran here before, as they and the processor are now."""
    return any(
        True for folder in folders() for _ in folder.glob(f"*.{fingerprint()}.o")
    )


@cache
def fingerprint() -> str:
    """Digest all that the code depends on."""
    digest = hashlib.sha256()
    for path in sorted(_HERE.glob("*.py")):
        digest.update(path.read_bytes())
    versions = _version("numba"), _version("llvmlite"), np.__version__
    digest.update(repr((*versions, *processor())).encode())
    return digest.hexdigest()[:16]


def processor() -> tuple[str, str]:
    """Name this processor, and what it can do more or less than others of the name."""
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know how to ask this kind
        features = ""
    return llvm.get_host_cpu_name(), features


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # it runs from its source
        return ""


def folders() -> Iterator[Path]:
    """List where code may be kept, the best place first."""
    yield _HERE / "__pycache__"
    with suppress(RuntimeError):  # there is no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / (
            "qmanifest"
        )


def kept(name: str) -> bytes | None:
    """Read the code of a kernel; None where it is absent or damaged."""
    for folder in folders():
        with suppress(OSError):
            content = (folder / f"{name}.{fingerprint()}.o").read_bytes()
            digest, code = content[:_DIGEST], content[_DIGEST:]
            if hashlib.sha256(code).digest() == digest:
                return code
    return None


def keep(name: str, code: bytes) -> None:
    """Write the code of a kernel where that is possible, instead of older ones."""
    for folder in folders():
        with suppress(OSError, WriteError):
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / f"{name}.{fingerprint()}.o"
            with atomic_file(target) as stream:
                stream.write(hashlib.sha256(code).digest() + code)
            for path in {*folder.glob(f"{name}.*.o")} - {target}:
                path.unlink(missing_ok=True)
            return
