"""What a bitsandbytes config says that cannot be, or that the tensors contradict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from qmanifest.families import BNB8
from qmanifest.findings import DefectKind, Severity
from qmanifest.schemes import Codebook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.bitsandbytes import BitsAndBytesConfig
    from qmanifest.evidence import Found
    from qmanifest.findings import Defect, JsonValue
    from qmanifest.schemes import Scaled

STORAGES: Final = {
    "uint8": "U8",
    "int8": "I8",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
"""Values of `bnb_4bit_quant_storage`."""


def impossible(document: BitsAndBytesConfig, place: Place) -> Iterator[Defect]:
    """Find what no reader takes, whatever is stored."""
    yield from document.unknown(place)
    if document.load_in_4bit and document.load_in_8bit:
        yield place.defect(
            DefectKind.CONTRADICTION,
            "load_in_4bit and load_in_8bit are both true",
            "load_in_8bit",
            hint="set the one to false that is not stored",
        )
    for name in ("4bit", "8bit"):
        said = getattr(document, f"load_in_{name}")
        copy = getattr(document, f"mirrored_{name}")
        if said is not None and copy is not None and said != copy:
            yield place.defect(
                DefectKind.TWINS_DISAGREE,
                f"load_in_{name} is {said} and _load_in_{name} is {copy}",
                f"_load_in_{name}",
                expected=said,
                actual=copy,
                hint="make both say the same",
            )
    storage = document.bnb_4bit_quant_storage
    if storage is not None and storage not in STORAGES:
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"bnb_4bit_quant_storage is {storage!r}, which bitsandbytes does not have",
            "bnb_4bit_quant_storage",
            expected=", ".join(STORAGES),
            actual=storage,
        )


@dataclass(slots=True)
class Contradictions:
    """Keys that say something else than the tensors, with the first that shows it."""

    document: BitsAndBytesConfig
    place: Place
    found: dict[str, tuple[str, JsonValue, str]] = field(default_factory=dict)
    """By key: the weight, what the key says, and how the weight is stored."""

    def look(self, name: str, found: Found, scheme: Codebook | Scaled) -> None:
        """Hold a stored weight against the config."""
        width = 8 if found.family is BNB8 else 4
        said = 4 if self.document.load_in_4bit else 8
        if width != said:
            key = f"load_in_{width}bit"
            self.found.setdefault(key, (name, f"{said}-bit", f"{width}-bit"))
        if not isinstance(scheme, Codebook) or width != said:
            return
        config = self.document
        table, nests = config.bnb_4bit_quant_type, config.bnb_4bit_use_double_quant
        storage, dtype = config.bnb_4bit_quant_storage, found.codes.dtype
        nested = bool(scheme.nested)
        differ = {
            "quant_type": (table, table != scheme.table, scheme.table),
            "use_double_quant": (
                nests,
                nests is not nested,
                f"with absmax {'quantized' if nested else 'as plain floats'}",
            ),
            "quant_storage": (
                storage,
                STORAGES.get(storage or "", dtype) != dtype,
                dtype,
            ),
        }
        for key, (value, differs, stored) in differ.items():
            if value is not None and differs:
                self.found.setdefault(f"bnb_4bit_{key}", (name, value, stored))

    def defects(self) -> Iterator[Defect]:
        """Report each key once; the width decides what loaders build."""
        for key, (name, said, stored) in self.found.items():
            wide = key.startswith("load_in")
            value = getattr(self.document, key)
            says = f"{said} ({key} is {value})" if wide else f"{key} {value!r}"
            yield self.place.defect(
                DefectKind.CONTRADICTION,
                f"the config says {says}, and {name!r} is stored {stored}"
                + ("" if wide else "; loaders take it from the tensors"),
                key,
                tensor=name,
                expected=said,
                actual=stored,
                hint=f"correct {key}, or convert again",
                severity=None if wide else Severity.WARNING,
            )
