"""Config vocabularies: one file each, all in the tuple `DIALECTS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects import (
    auto_round,
    awq,
    bitsandbytes,
    compressed_tensors,
    exl2,
    exl3,
    fp8,
    gptq,
    hqq,
    metal,
    mlx,
    modelopt,
    mxfp4,
    q4_lists,
    quanto,
    quark,
    tensor_map,
    torchao,
)
from qmanifest.errors import UnknownDialectError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.dialects.base import Dialect

DIALECTS: Final[tuple[Dialect[Any], ...]] = (
    tensor_map.DIALECT,
    q4_lists.DIALECT,
    mlx.DIALECT,
    metal.DIALECT,
    gptq.DIALECT,
    awq.DIALECT,
    compressed_tensors.DIALECT,
    fp8.DIALECT,
    modelopt.DIALECT,
    mxfp4.DIALECT,
    bitsandbytes.DIALECT,
    auto_round.DIALECT,
    torchao.DIALECT,
    hqq.DIALECT,
    quanto.DIALECT,
    quark.DIALECT,
    exl2.DIALECT,
    exl3.DIALECT,
)


def dialect_named(dialect_id: str) -> Dialect[Any]:
    """Find a dialect by its id.

    Raises:
        UnknownDialectError: there is none.

    """
    for dialect in DIALECTS:
        if dialect.id == dialect_id:
            return dialect
    raise UnknownDialectError(dialect_id, [dialect.id for dialect in DIALECTS])


def recognize(raw: Mapping[str, Any]) -> tuple[Dialect[Any], ...]:
    """List the dialects that a config file's object holds a document of."""
    return tuple(dialect for dialect in DIALECTS if dialect.locate(raw))
