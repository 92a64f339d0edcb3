"""Where quantization configs lie in the files of other libraries than MLX.

`config.json` has one under a key of its own, at the top or in the config of the text
model; a file beside it, `quantize_config.json` and its like, is one as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dimensions import TEXT_CONFIGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from qmanifest.dialects.base import Keys, Raw

BLOCKS: Final = ("quantization_config", "compression_config")
"""Keys of `config.json` that transformers and its kin read."""
_MODEL: Final = ("architectures", "model_type", "hidden_size")
"""Keys of a model's own config, which is no quantization config as a whole."""


def blocks(raw: Raw) -> Iterator[tuple[Keys, Mapping[str, Any]]]:
    """Walk over every object that may be a quantization config, with its place."""
    for keys in ((), *((outer,) for outer in TEXT_CONFIGS)):
        scope = raw.get(keys[0]) if keys else raw
        if not isinstance(scope, dict):
            continue
        for name in BLOCKS:
            if isinstance(block := scope.get(name), dict):
                yield (*keys, name), block
    if not any(key in raw for key in (*BLOCKS, *_MODEL)):
        yield (), raw


def by_method(raw: Raw, methods: Collection[str]) -> tuple[Keys, ...]:
    """Find the blocks whose `quant_method` is one of `methods`, in lower case."""
    return tuple(keys for keys, block in blocks(raw) if method_of(block) in methods)


def method_of(block: Mapping[str, Any]) -> str | None:
    """Read what a block calls its method, in lower case; None where it does not."""
    method = block.get("quant_method")
    return method.lower() if isinstance(method, str) else None
