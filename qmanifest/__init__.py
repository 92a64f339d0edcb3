"""Prove that a quantized checkpoint is what its config says.

The public names load on first use, so that importing the package costs nothing:

    >>> import qmanifest
    >>> report = qmanifest.validate(folder, deep=True)  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from qmanifest.check import Report, assert_valid, validate
    from qmanifest.checkpoint import Checkpoint, open_checkpoint, open_config
    from qmanifest.converting.config import write_config
    from qmanifest.converting.pack import pack_checkpoint
    from qmanifest.converting.unpack import unpack_checkpoint
    from qmanifest.errors import (
        InvalidCheckpointError,
        InvalidConfigError,
        QManifestError,
    )
    from qmanifest.findings import Finding, Location, Problem, Severity
    from qmanifest.manifest import Component, Entry, Kept, Manifest, Weight
    from qmanifest.schemes import Affine, Microscaling, ZeroPoint
    from qmanifest.sizes import Sizes, sizes_of, stored_sizes
    from qmanifest.weights import CheckpointWeights

__version__: Final = "0.1.0"

__all__ = [
    "Affine",
    "Checkpoint",
    "CheckpointWeights",
    "Component",
    "Entry",
    "Finding",
    "InvalidCheckpointError",
    "InvalidConfigError",
    "Kept",
    "Location",
    "Manifest",
    "Microscaling",
    "Problem",
    "QManifestError",
    "Report",
    "Severity",
    "Sizes",
    "Weight",
    "ZeroPoint",
    "assert_valid",
    "open_checkpoint",
    "open_config",
    "pack_checkpoint",
    "sizes_of",
    "stored_sizes",
    "unpack_checkpoint",
    "validate",
    "write_config",
]

_MODULES: Final = {
    "qmanifest.check": ("Report", "assert_valid", "validate"),
    "qmanifest.checkpoint": ("Checkpoint", "open_checkpoint", "open_config"),
    "qmanifest.converting.config": ("write_config",),
    "qmanifest.converting.pack": ("pack_checkpoint",),
    "qmanifest.converting.unpack": ("unpack_checkpoint",),
    "qmanifest.errors": (
        "InvalidCheckpointError",
        "InvalidConfigError",
        "QManifestError",
    ),
    "qmanifest.findings": ("Finding", "Location", "Problem", "Severity"),
    "qmanifest.manifest": ("Component", "Entry", "Kept", "Manifest", "Weight"),
    "qmanifest.schemes": ("Affine", "Microscaling", "ZeroPoint"),
    "qmanifest.sizes": ("Sizes", "sizes_of", "stored_sizes"),
    "qmanifest.weights": ("CheckpointWeights",),
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name is of
    """Load a public name on first use, over a submodule that is called the same."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
