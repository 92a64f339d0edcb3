"""What the CPU can do that numba compiles for."""

from __future__ import annotations

import platform
from functools import cache

from llvmlite import binding
from numba import config

from qmanifest.kernels.coding import NIBBLE, Coding


@cache
def _cpu_has(feature: str) -> bool:
    """Whether the CPU that numba compiles for has a feature, by LLVM's name."""
    name, features = (getattr(config, f"CPU_{part}") for part in ("NAME", "FEATURES"))
    if features is not None:
        return f"+{feature}" in str(features).split(",")
    if name not in (None, "host"):
        return False
    return bool(binding.get_host_cpu_features().get(feature))


def has_lookup() -> bool:
    """Whether the CPU can index a register of 16 floats, or of 32 halves of one."""
    return _cpu_has("avx512f") and _cpu_has("avx512bw")


def has_float16() -> bool:
    """Whether the CPU converts float16; LLVM would call what is not there."""
    return _cpu_has("f16c") or platform.machine().lower() in ("aarch64", "arm64")


def coding_of(bits: int, group_size: int, scale: str) -> Coding | None:
    """Choose how this CPU takes a weight; None where it cannot."""
    if scale == "F16" and not has_float16():
        return None
    return Coding(bits, group_size, scale, bits <= NIBBLE and has_lookup())
