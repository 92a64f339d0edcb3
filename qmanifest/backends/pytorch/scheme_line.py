"""Schemes as torch operators take them: as text.

An operator's arguments are tensors, numbers and text. The canonical line says all about
a scheme of rows; of the others it does not, and they are written as JSON, with the
roles of the parts that there are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import torch
from pydantic import TypeAdapter, ValidationError

from qmanifest.errors import BackendError
from qmanifest.schemes import ROW_SCHEMES, Affine, Microscaling, Scheme, ZeroPoint

_SCHEMES: Final = 1024
_WHOLE: Final = TypeAdapter(tuple[Scheme, tuple[str, ...]])


def is_by_row(scheme: Scheme) -> bool:
    """Whether rows of a weight can be rebuilt from rows of its parts."""
    return isinstance(scheme, ROW_SCHEMES)


# `torch.compile` cannot look into pydantic, and watches what it is called with.
@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator] # torch has no types here
def write_line(scheme: Scheme, roles: tuple[str, ...]) -> str:
    """Write a scheme, and which parts of it there are, so that nothing is lost."""
    if is_by_row(scheme):
        return str(scheme)
    return _WHOLE.dump_json((scheme, roles)).decode()


@lru_cache(_SCHEMES)
def parse_line(line: str) -> tuple[Scheme, tuple[str, ...]]:
    """Read what `write_line` wrote.

    Raises:
        BackendError: it never wrote that.

    """
    if not line.startswith("["):
        scheme = parse_scheme(line)
        return scheme, tuple(role for role, _, _ in scheme.parts(None))
    try:
        return _WHOLE.validate_json(line)
    except ValidationError as error:
        raise BackendError(f"no scheme is written {line!r}") from error


@lru_cache(_SCHEMES)
def parse_scheme(line: str) -> Scheme:
    """Find the scheme that prints as `line`.

    Raises:
        BackendError: no scheme does.

    """
    kind, _, inside = line.partition("(")
    pairs = (each.partition("=") for each in inside.removesuffix(")").split(", "))
    values = {key: value for key, _, value in pairs}
    try:
        scheme = _scheme(kind, values)
    except (KeyError, ValueError):
        scheme = None
    if scheme is None or str(scheme) != line:
        raise BackendError(f"no scheme is written {line!r}")
    return scheme


def _scheme(kind: str, values: dict[str, str]) -> Scheme | None:
    """Make a scheme of its kind and of what stands in the parentheses."""
    group, pack = int(values["group"]), values["pack"]
    if kind == "microscaling":
        element, scale = values["element"], values["scale"]
        if "global" in values:
            return Microscaling(element, group, scale, pack, "amax")
        return Microscaling(element, group, scale, pack, "none")
    bits, dtypes = int(values["bits"]), tuple(values["scale"].split("|"))
    if kind == "affine":
        return Affine(bits, group, dtypes, pack)
    if kind == "zero-point":
        zeros = tuple(values["zero"].split("|"))
        return ZeroPoint(bits, group, dtypes, zeros, pack)
    return None
