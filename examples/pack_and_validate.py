"""Pack a small random model under a config, and prove the result.

    python examples/pack_and_validate.py

The 16-bit original is the witness of every shape, and `deep` reads the bytes too.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from qmanifest import (
    InvalidCheckpointError,
    assert_valid,
    open_checkpoint,
    pack_checkpoint,
    stored_sizes,
)

CONFIG = {
    "bits": 4,
    "group_size": 64,
    "kept_16bit": ["embed.weight"],
    "tensors": {
        "up.weight": {"shape": [512, 128]},
        "down.weight": {"shape": [128, 512], "bits": 8, "group_size": 32},
    },
}


def write_original(folder: Path) -> None:
    """Write the 16-bit model that a real converter would be given."""
    folder.mkdir()
    random = np.random.default_rng(0)
    shapes = {"embed": (1000, 128), "up": (512, 128), "down": (128, 512)}
    tensors = {
        f"{name}.weight": random.normal(0, 0.02, shape).astype(np.float16)
        for name, shape in shapes.items()
    }
    save_file(tensors, folder / "model.safetensors")


def main() -> None:
    """Pack, prove, then break the config and see it refused."""
    with tempfile.TemporaryDirectory() as temporary:
        original, packed = Path(temporary, "original"), Path(temporary, "packed")
        config = Path(temporary, "quant_config.json")
        config.write_text(json.dumps(CONFIG), encoding="utf-8")
        write_original(original)

        pack_checkpoint(original, config, packed)
        report = assert_valid(packed, base=original, deep=True)
        print(f"{report.weights} weights proved by {len(report.checked)} rules")
        for component, store in open_checkpoint(packed).found():
            bits = stored_sizes(store.index, component).bits_per_weight
            print(f"{float(bits or 0):.2f} bits per quantized weight")

        wrong = {**CONFIG, "bits": 8, "group_size": 32}
        written = packed / "quant_config.json"
        written.write_text(json.dumps(wrong), encoding="utf-8")
        try:
            assert_valid(packed, base=original)
        except InvalidCheckpointError as error:
            print("\n".join(error.messages))


if __name__ == "__main__":
    main()
