"""Load a packed checkpoint into a torch model, and compare it with the dense one.

pip install 'qmanifest[torch]'
python examples/torch_matmul.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from qmanifest import CheckpointWeights, open_checkpoint, pack_checkpoint
from qmanifest.backends.pytorch import load_into

CONFIG = {
    "bits": 8,
    "group_size": 32,
    "kept_16bit": ["*.bias"],
    "tensors": {"0.weight": {"shape": [256, 128]}, "2.weight": {"shape": [128, 256]}},
}


def model() -> nn.Module:
    """Build the network: two layers and what is between them."""
    return nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128))


def main() -> None:
    """Pack the model's weights, load them packed, and multiply with both."""
    torch.manual_seed(0)
    dense = model()
    with tempfile.TemporaryDirectory() as temporary:
        original, packed = Path(temporary, "original"), Path(temporary, "packed")
        original.mkdir()
        config = Path(temporary, "quant_config.json")
        config.write_text(json.dumps(CONFIG), encoding="utf-8")
        save_file(dense.state_dict(), original / "model.safetensors")
        pack_checkpoint(original, config, packed)

        quantized = model()
        source = CheckpointWeights(open_checkpoint(packed))
        print(load_into(quantized, source, strict=True))

    x = torch.randn(16, 128)
    with torch.no_grad():
        exact, close = dense(x), quantized(x)
    error = (exact - close).norm() / exact.norm()
    print(f"relative error of the outputs: {error.item():.4f}")


if __name__ == "__main__":
    main()
