"""Count the bytes that a config promises, before anything is converted.

    python examples/sizes.py

A `tensor-map` config declares shapes, so it needs no weights. Sums are exact: bits
per weight is a fraction, with the scales and biases counted in.
"""

from __future__ import annotations

from pathlib import Path

from qmanifest import open_config, sizes_of

CONFIG = Path(__file__).parent / "tensor_map" / "quant_config.json"


def main() -> None:
    """Print the promise of the example config."""
    manifest = open_config(CONFIG).manifest
    assert manifest is not None, "the config could not be read"
    sizes = sizes_of(manifest)
    for group in sizes.group("layer"):
        print(
            f"{group.label:10} {group.parameters:>9,} weights {group.nbytes:>9,} bytes"
        )
    print(
        f"codes {sizes.codes:,}, scales {sizes.scales:,}, biases {sizes.biases:,} bytes"
    )
    print(f"{sizes.bits_per_weight} bits per weight")
    for sentence in sizes.unknown:
        print(sentence)


if __name__ == "__main__":
    main()
