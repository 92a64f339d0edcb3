"""`dynamic`: what GPTQModel writes beside GPTQ and AWQ for modules that differ.

A key is a regular expression from the start of a module's name. With `-:` before it
the module stays 16-bit; with `+:` or nothing its value says how it is quantized.
GPTQModel asks those with `-:` first, vLLM all in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from annotated_types import Gt
from pydantic import BaseModel, ConfigDict

from qmanifest.dialects.lowering.claims import Claim, escaped
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.findings import Severity
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Mapping

KEEP: Final = "-:"
QUANTIZE: Final = "+:"
HEAD: Final = "lm_head"
"""A module that many models lack, since their head is tied to the embedding."""


GroupSize: TypeAlias = Literal[-1] | Annotated[int, Gt(0)]
"""Inputs that share a scale; -1 is all of a row."""


class Override(BaseModel):
    """What a module has instead of the document's values; other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    bits: int | None = None
    """Bits of a code."""
    group_size: GroupSize | None = None
    """Inputs that share a scale and a zero point; -1 is all of a row."""
    sym: bool | None = None
    """Whether every zero point is the middle code."""
    desc_act: bool | None = None
    """Whether inputs were ordered by activation."""


Dynamic: TypeAlias = "dict[str, Override | None]"
"""Overrides by pattern, in the order of the document."""


def claims(dynamic: Mapping[str, Any] | None) -> list[Claim]:
    """List the patterns as GPTQModel asks them: those that keep modules first."""
    texts = sorted(dynamic or {}, key=lambda text: not text.startswith(KEEP))
    return [
        Claim(
            ("dynamic", text),
            Pattern(text, Syntax.DYNAMIC),
            "keep" if text.startswith(KEEP) else "quantize",
            Severity.NOTE if HEAD in text else Severity.WARNING,
            SUFFIX,
            *read_by("gptq", "dynamic"),
        )
        for text in texts
    ]


def pattern_of(weight: str, mark: str) -> str:
    """Write the pattern that matches the module of a weight and no other."""
    return f"{mark}^{escaped(weight.removesuffix(SUFFIX))}$"
