"""Schemes as torch operators take them: as their canonical line.

An operator's arguments are tensors, numbers and text; the line says all about a scheme.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from qmanifest.errors import BackendError
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme

_SCHEMES: Final = 1024


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
        return Microscaling(element, group, scale, pack)
    bits, dtypes = int(values["bits"]), tuple(values["scale"].split("|"))
    if kind == "affine":
        return Affine(bits, group, dtypes, pack)
    if kind == "zero-point":
        zeros = tuple(values["zero"].split("|"))
        return ZeroPoint(bits, group, dtypes, zeros, pack)
    return None
