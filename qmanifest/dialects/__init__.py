"""Config vocabularies: one file each, and one line each in `_LINES`.

A run reads one dialect, so a module is loaded only where a config has one of the words
on its line: a key of the file or of its quantization block, or the block's
`quant_method`. Whether the file is of the dialect, its `locate` decides.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.errors import UnknownDialectError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.dialects.base import Dialect

    DIALECTS: tuple[Dialect[Any], ...]

_LINES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("tensor-map", ("tensors", "kept_16bit")),
    ("q4-lists", ("quant", "protected_fp16")),
    ("mlx", ("quantization", "quantization_config")),
    ("metal", ("metal",)),
    ("gptq", ("gptq", "gptqmodel", "marlin", "desc_act", "damp_percent")),
    ("awq", ("awq", "zero_point")),
    ("compressed-tensors", ("compressed-tensors", "compression_config")),
    ("fp8", ("fp8",)),
    ("modelopt", ("modelopt", "quant_algo", "quantization", "producer")),
    ("mxfp4", ("mxfp4",)),
    ("bitsandbytes", ("bitsandbytes", "load_in_4bit", "load_in_8bit")),
    ("auto-round", ("auto-round", "auto_round", "intel/auto-round")),
    ("torchao", ("torchao",)),
    ("hqq", ("hqq",)),
    ("quanto", ("quanto",)),
    ("quark", ("quark",)),
    ("exl2", ("exl2",)),
    ("exl3", ("exl3",)),
    ("gemma", ("gemma",)),
    ("aqlm", ("aqlm",)),
    ("vptq", ("vptq",)),
    ("spqr", ("spqr",)),
    ("higgs", ("higgs",)),
    ("bitnet", ("bitnet",)),
)
"""Id of a dialect, whose module is called like it, and words that its configs have."""
IDS: Final = tuple(dialect_id for dialect_id, _ in _LINES)


@cache
def _loaded(dialect_id: str) -> Dialect[Any]:
    """Load a dialect's module."""
    module = import_module(f"qmanifest.dialects.{dialect_id.replace('-', '_')}")
    found: Dialect[Any] = module.DIALECT
    return found


def dialect_named(dialect_id: str) -> Dialect[Any]:
    """Find a dialect by its id.

    Raises:
        UnknownDialectError: there is none.

    """
    if dialect_id not in IDS:
        raise UnknownDialectError(dialect_id, list(IDS))
    return _loaded(dialect_id)


def recognize(raw: Mapping[str, Any]) -> tuple[Dialect[Any], ...]:
    """List the dialects that a config file's object holds a document of.

    Where no word tells, as in a file of nothing but module names, all are asked.
    """
    words = _words(raw)
    told = tuple(each for each, marks in _LINES if not words.isdisjoint(marks))
    return _of(raw, told) or _of(raw, tuple(each for each in IDS if each not in told))


def _of(raw: Mapping[str, Any], ids: tuple[str, ...]) -> tuple[Dialect[Any], ...]:
    """List those of some dialects that the object holds a document of."""
    return tuple(each for each in map(_loaded, ids) if each.locate(raw))


def _words(raw: Mapping[str, Any]) -> set[str]:
    """Collect the keys of the file and its blocks, and what the blocks are called."""
    words = set(raw)
    for _, block in blocks(raw):
        method = method_of(block) or ""
        words |= {*block, method, method.partition("_")[0]}
    return words


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name is of
    """Load all dialects where all are asked for."""
    if name == "DIALECTS":
        return tuple(map(_loaded, IDS))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
