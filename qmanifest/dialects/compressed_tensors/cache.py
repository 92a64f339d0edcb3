"""Scales of the cache: that static ones are stored where a config promises them.

`k_scale` and `v_scale` stand in the module of the attention, or in those of its key and
value projections, where versions before 0.8 called them `output_scale`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.findings import DefectKind, Location, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.compressed_tensors.args import QuantizationArgs
    from qmanifest.findings import Defect
    from qmanifest.tensors import Shape, TensorIndex

SCALES: Final = (
    *(".k_scale", ".v_scale"),
    *(".k_proj.output_scale", ".v_proj.output_scale"),
)


def cache_defects(
    cache: QuantizationArgs | None, index: TensorIndex, place: Place
) -> Iterator[Defect]:
    """Report static scales of the cache that are not stored, or of another shape.

    Args:
        cache: how keys and values are quantized; None where they are not.
        index: the stored tensors.
        place: where the document lies.

    """
    if cache is None or cache.dynamic is True:
        return
    stored = [tensor for name, tensor in index.items() if name.endswith(SCALES)]
    if index and not stored:
        yield place.defect(
            DefectKind.CONTRADICTION,
            "kv_cache_scheme promises static scales, and no k_scale or v_scale is "
            "stored",
            "kv_cache_scheme",
            hint="calibrate the cache again; loaders take 1.0 for an absent scale",
            severity=Severity.WARNING,
        )
    for tensor in stored:
        if not _fits(tensor.shape, cache):
            yield place.defect(
                DefectKind.CONTRADICTION,
                f"{tensor.name!r} is stored {tensor}, and kv_cache_scheme has strategy "
                f"{cache.spread}",
                "kv_cache_scheme",
                also=(Location(tensor.file, tensor=tensor.name),),
                expected="[heads, 1, 1]" if cache.spread == "attn_head" else "[1]",
                actual=list(tensor.shape),
                severity=Severity.WARNING,
            )


def _fits(shape: Shape, cache: QuantizationArgs) -> bool:
    """Whether scales have a shape of their strategy."""
    if cache.spread == "attn_head":
        return len(shape) == 3 and shape[1:] == (1, 1)  # noqa: PLR2004 - heads, 1, 1
    return cache.spread != "tensor" or shape in {(), (1,)}
