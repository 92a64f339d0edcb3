"""Quantization configs that describe no safetensors: said plainly, as a note.

They lie under the same file names as those that do, so people point us at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from qmanifest.dialects.base import Raw

ONNX: Final = ({"per_model_config"}, {"per_channel", "reduce_range"})
"""Keys of what Transformers.js writes when it quantizes ONNX models."""
SQUEEZELLM: Final = {"wbits"}


def elsewhere(raw: Raw) -> str | None:
    """Say whose config it is, where it is of tensors in other files than safetensors.

    Returns:
        The format's name, or None where the config is none of these.

    """
    if any(keys <= raw.keys() for keys in ONNX):
        return "Transformers.js' ONNX quantization"
    if raw.keys() == SQUEEZELLM:
        return "SqueezeLLM, whose tensors lie in a PyTorch file"
    return None
