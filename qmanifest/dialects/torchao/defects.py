"""What a torchao config says that cannot be, or that the tensors contradict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from qmanifest.dialects.torchao.said import BY_NAME, KINDS, TABLES, WAY, canonical
from qmanifest.findings import Defect, DefectKind, Location, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.torchao import TorchAoConfig
    from qmanifest.dialects.torchao.said import Said
    from qmanifest.tensors import TensorInfo


def impossible(document: TorchAoConfig, place: Place) -> Iterator[Defect]:
    """Find what no reader takes."""
    yield from document.unknown(place)
    way, table = document.by_module()
    configs: list[tuple[tuple[str, ...], object]] = []
    if not table:
        configs.append((WAY, document.config()))
    configs += [((*way, name), own) for name, own in table.items() if own is not None]
    for parts, config in configs:
        kind = config.get("_type") if isinstance(config, Mapping) else config
        if canonical(kind) is None and kind not in BY_NAME:
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"quant_type {kind!r} is no torchao config that is known",
                *(parts if isinstance(document.quant_type, dict) else parts[:1]),
                expected=", ".join(sorted({*KINDS, *BY_NAME})),
                actual=str(kind),
                severity=Severity.WARNING,
            )
    data = document.config().get("_data")
    one, two = (data.get(key) if isinstance(data, dict) else None for key in TABLES)
    if one and two and one != two:
        yield place.defect(
            DefectKind.CONTRADICTION,
            "fqn_to_config and module_fqn_to_config are not the same",
            *(*way[:-1], TABLES[1]),
            hint="make both say the same; torchao refuses them",
        )


def contradiction(
    place: Place, pointer: str, name: str, said: Said, codes: TensorInfo
) -> Defect:
    """Report codes that are stored as another config makes them."""
    problem = Problem(
        f"{pointer} says {said.kind} and {name!r} is stored {codes}",
        (Location(place.file, pointer), Location(codes.file, tensor=codes.name)),
        expected=said.kind,
        actual=codes.dtype,
        hint="declare what is stored, or convert again",
    )
    return Defect(DefectKind.CONTRADICTION, problem)
