"""Build a manifest in code and write it in two dialects.

    python examples/build_manifest.py

A converter knows what it did to every tensor. Said once as a manifest, it can be
written as the config of any dialect that has the words for it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from qmanifest import (
    Affine,
    Component,
    Kept,
    Manifest,
    Weight,
    open_config,
    write_config,
)
from qmanifest.check import check

FLOATS = ("F16", "BF16")
"""Either is fine for scales and kept tensors; the first is what `pack` writes."""


def manifest() -> Manifest:
    """Promise two blocks in 4 bits, with the more sensitive output in 8."""
    four, eight = Affine(4, 64, FLOATS, "u32-lsb"), Affine(8, 32, FLOATS, "u32-lsb")
    weights = [
        Weight(f"blocks.{number}.{layer}.weight", scheme, pointer="", shape=shape)
        for number in range(2)
        for layer, scheme, shape in (
            ("up", four, (512, 128)),
            ("down", eight, (128, 512)),
        )
    ]
    kept = Kept("embed.weight", pointer="", dtypes=FLOATS)
    return Manifest("tensor-map", None, (Component("", tuple(weights), (kept,)),))


def main() -> None:
    """Write both configs, and check each by itself."""
    with tempfile.TemporaryDirectory() as folder:
        for dialect in ("tensor-map", "mlx"):
            path = write_config(manifest(), Path(folder), dialect=dialect)
            report = check(open_config(path))
            print(f"{dialect}: {path.name}, {len(report.findings)} findings")
            print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
