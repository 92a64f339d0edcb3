"""Prose in a config: never the source of a number, and sometimes at odds with one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from qmanifest.findings import DefectKind, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.findings import Defect

WIDTH: Final = re.compile(r"(?<![\d.])([1-8])[- ]?bits?\b", re.IGNORECASE)
"""A code width; `16-bit` is what is computed in."""
BFLOAT16: Final = re.compile(r"\bbf(loat)?16\b", re.IGNORECASE)


def prose_defects(prose: str, bits: int, place: Place, key: str) -> Iterator[Defect]:
    """Note prose that speaks of another width, or of bf16 where all is float16."""
    for width in dict.fromkeys(map(int, WIDTH.findall(prose))):
        if width != bits:
            yield place.defect(
                DefectKind.LABEL,
                f"{key} speaks of {width}-bit while the config has bits {bits}",
                key,
                expected=bits,
                actual=width,
                hint="correct the prose, or the number",
                severity=Severity.NOTE,
            )
    if BFLOAT16.search(prose):
        yield place.defect(
            DefectKind.LABEL,
            f"{key} speaks of bf16 while kept tensors are float16",
            key,
            hint="correct the prose",
            severity=Severity.NOTE,
        )
