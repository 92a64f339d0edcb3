"""QM5, statements: that small tensors beside a weight say of it what it is."""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any, Final

from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.fitting import fits
from qmanifest.schemes import Codebook, Extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.rules.fit import Fit

NUMBERS: Final = {"U8": "B", "I8": "b", "I32": "i", "I64": "q", "F32": "f"}
"""How numbers of a dtype lie in bytes, by `struct`."""
MOST: Final = 8
"""Numbers of a part that is read here."""
SHAPES: Final = ("hqq_shape", "shape")
"""Roles of the parts that have the logical shape of a weight."""


@rule("QM508", "statement", Severity.ERROR, needs=Depth.DATA)
def statement(checkpoint: Checkpoint) -> Iterator[Problem]:
    """What is written beside a weight is not what the weight is.

    Formats that flatten or pad weights store the shape in a tensor of its own, or in a
    small JSON document, with the block size and the table of the codes. Others store
    every setting as a number.

    ## Why it matters
    Loaders go by what is written there. Codes that are read with another shape, block
    size or table are noise.

    ## Fix
    Convert the layer again.
    """
    for fit in fits(checkpoint):
        if fit.fault is not None:
            continue
        for role, says, expected, actual in _differences(fit):
            part = fit.stored[role]
            yield Problem(
                f"{part.name!r} {says} {actual}, and {fit.weight.name!r} is {expected} "
                f"({fit.codes}, {fit.weight.scheme})",
                (
                    Location(
                        part.file, tensor=part.name, byte_range=(part.begin, part.end)
                    ),
                    Location(checkpoint.config_name, fit.weight.pointer),
                ),
                expected=expected,
                actual=actual,
                hint="convert the layer again; loaders go by what is written there",
            )


def _differences(fit: Fit) -> Iterator[tuple[str, str, str, str]]:
    """Walk over what is said wrongly: role, verb, what the weight is, what is said."""
    if isinstance(fit.weight.scheme, Codebook):
        yield from _of_state(fit, fit.weight.scheme)
    extras: tuple[Extra, ...] = getattr(fit.weight.scheme, "extras", ())
    for extra in extras:
        numbers = _numbers(fit, extra.role)
        if extra.value is not None and numbers and numbers != (extra.value,):
            said = ", ".join(map(str, numbers))
            yield extra.role, "is", f"of {extra.value}", said
    for role in SHAPES:
        shape = _numbers(fit, role)
        if shape and not _is_shape(fit, list(shape)):
            yield role, "is", _weights(fit), str(list(shape))


def _numbers(fit: Fit, role: str) -> tuple[float, ...]:
    """Read a small part as numbers; empty where there is none, or a large one."""
    part = fit.stored.get(role)
    if part is None or part.dtype not in NUMBERS or math.prod(part.shape) > MOST:
        return ()
    data = fit.bytes_of(role)
    if not data:
        return ()
    code = NUMBERS[part.dtype]
    return struct.unpack(f"<{math.prod(part.shape)}{code}", data)


def _of_state(fit: Fit, scheme: Codebook) -> Iterator[tuple[str, str, str, str]]:
    """Compare bitsandbytes' document with the weight."""
    data = fit.bytes_of("quant_state")
    if data is None:
        return
    said = _document(data)
    if said is None:
        yield "quant_state", "is", "read by one", "no JSON object"
        return
    known: dict[str, object] = {"quant_type": scheme.table}
    if math.prod(fit.shape or ()) > scheme.block_size:  # one block may be of any size
        known["blocksize"] = scheme.block_size
    if scheme.nested:
        known["nested_blocksize"] = scheme.nested
    for key, value in known.items():
        if said.get(key) != value:
            own = json.dumps(said.get(key))
            yield "quant_state", f"says {key}", f"of {json.dumps(value)}", own
    if not _is_shape(fit, said.get("shape")):
        own = json.dumps(said.get("shape"))
        yield "quant_state", "says shape", _weights(fit), own


def _document(data: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _is_shape(fit: Fit, said: object) -> bool:
    """Whether the codes are those of a weight of a shape, and its witness has it."""
    if not isinstance(said, list) or not all(
        type(side) is int and side > 0 for side in said
    ):
        return False
    known = fit.witness.shape if fit.witness else None
    if known is not None:
        return said == list(known)
    return all(
        size is None or role not in fit.stored or fit.stored[role].shape == size
        for role, _, size in fit.weight.scheme.parts(tuple(said))
    )


def _weights(fit: Fit) -> str:
    """Say what the weight is, as far as it shows."""
    known = fit.witness.shape if fit.witness else fit.shape
    return "of another shape" if known is None else f"of {math.prod(known):,} weights"


RULES = (statement,)
