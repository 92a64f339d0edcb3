"""Lower a config in one call, against tensors that are only described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qmanifest.dialects import dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import parse
from qmanifest.dtypes import nbytes
from qmanifest.tensors import TensorIndex, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from qmanifest.dialects.base import Lowered
    from qmanifest.findings import Defect, DefectKind
    from qmanifest.manifest import Component
    from qmanifest.tensors import Shape

FILE = "quant_config.json"


def index_of(tensors: Mapping[str, tuple[str, Shape]]) -> TensorIndex:
    """Index tensors of dtype and shape, one after another in one file."""
    infos, begin = [], 64
    for name, (dtype, shape) in tensors.items():
        end = begin + nbytes(dtype, shape)
        infos.append(TensorInfo(name, dtype, shape, begin, end, "model.safetensors"))
        begin = end
    return TensorIndex(infos)


def dense(*names: str) -> TensorIndex:
    """Index 16-bit matrices."""
    return index_of(dict.fromkeys(names, ("F16", (4, 64))))


def packed(*stems: str, kept: Iterable[str] = ()) -> TensorIndex:
    """Index 4-bit weights of 4 x 64 with scales and biases, and 16-bit matrices."""
    tensors: dict[str, tuple[str, Shape]] = {}
    for stem in stems:
        tensors[f"{stem}.weight"] = ("U32", (4, 8))
        tensors[f"{stem}.scales"] = tensors[f"{stem}.biases"] = ("F16", (4, 1))
    return index_of(tensors | dict.fromkeys(kept, ("F16", (4, 64))))


def lower(
    dialect: str, config: Mapping[str, Any], index: TensorIndex | None = None
) -> Lowered:
    """Lower a config; the index is that of every component."""
    chosen = dialect_named(dialect)
    document = parse(chosen, dict(config), Place(FILE))
    names = [each.name for each in chosen.components(document, Place(FILE))]
    indexes = None if index is None else dict.fromkeys(names, index)
    return chosen.lower(document, Place(FILE), indexes)


def lower_each(
    dialect: str, config: Mapping[str, Any], indexes: Mapping[str, TensorIndex]
) -> Lowered:
    """Lower a config; every component has an index of its own, or none."""
    chosen = dialect_named(dialect)
    document = parse(chosen, dict(config), Place(FILE))
    return chosen.lower(document, Place(FILE), indexes)


def component(
    dialect: str, config: Mapping[str, Any], index: TensorIndex | None = None
) -> Component:
    """Lower a config of one model, in which nothing is wrong."""
    lowered = lower(dialect, config, index)
    assert lowered.defects == ()
    (only,) = lowered.manifest.components
    return only


def emit_again(dialect: str, lowered: Lowered) -> dict[str, Any]:
    """Write the manifest as a config of a dialect."""
    document: dict[str, Any] = dialect_named(dialect).emit(lowered.manifest).to_json()
    return document


def of_kind(lowered: Lowered, kind: DefectKind) -> list[Defect]:
    """Pick the defects of one kind."""
    return [defect for defect in lowered.defects if defect.kind is kind]
