"""What a run was measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    *("qmanifest", "numpy", "numba", "llvmlite", "torch", "mlx", "onnxruntime"),
    *("safetensors", "pydantic", "jsonschema", "google-re2"),
)


def machine() -> dict[str, str]:
    """Describe the processor, the memory and the versions of what takes part.

    A run alone makes a load of about 1; more was others' work.
    """
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{pages * page / 2**30:.0f} GiB",
        "load, 5 minutes": f"{os.getloadavg()[1]:.1f}",
        "system": platform.system(),
        "Python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    """Find the model's name, and what a kernel could use of it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found: dict[str, str] = dict(_cut(line) for line in lines if ":" in line)
    flags = found.get("flags", "").split()
    wide = [
        name
        for name in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
        if name in flags
    ]
    name = found.get("model name") or platform.processor() or platform.machine()
    return f"{name} ({', '.join(wide)})" if wide else name


def _cut(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
