"""Writing a manifest in Gemma's words: one width, and a pattern for what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.gemma.schemes import WIDTHS, gemma
from qmanifest.dialects.lowering.claims import escaped
from qmanifest.dialects.lowering.one_model import SUFFIX, modules_kept, only
from qmanifest.errors import EmitError
from qmanifest.families import GEMMA_TABLE

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest

BITS: Final = 4
"""Bits of a code where nothing says them."""


def emit_gemma(manifest: Manifest) -> dict[str, Any]:
    """Write the document of a manifest.

    Raises:
        EmitError: it has several models, or weights of another scheme.

    """
    component = only(manifest, "gemma")
    tables = [weight.names == GEMMA_TABLE.names for weight in component.weights]
    for weight, table in zip(component.weights, tables, strict=True):
        bits = weight.scheme.bits
        if bits not in WIDTHS or weight.scheme != gemma(bits, table=table):
            raise EmitError(f"gemma has no words for {weight.name!r}: {weight.scheme}")
    widths = {weight.name: weight.scheme.bits for weight in component.weights}
    usual = next(iter(widths.values()), BITS)
    own = {
        f"^{escaped(name.removesuffix(SUFFIX))}$": {"num_bits": bits}
        for name, bits in widths.items()
        if bits != usual
    }
    return {
        "quant_method": "gemma",
        "num_bits": usual,
        "quantize_embeddings": any(tables),
        "module_quant_configs": own or None,
        "modules_to_not_convert": modules_kept(component) or None,
    }
