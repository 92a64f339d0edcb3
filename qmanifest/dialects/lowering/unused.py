"""How much news it is that an entry of a list matches nothing.

Lists are written for families of models, and name what one of them lacks. But some
name parameters, which no reader asks about, and some were spoilt when they were made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.findings import Severity

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex


def unused_entry(text: str, index: TensorIndex | None) -> Severity | None:
    """Say how bad it is when the entry `text` matches no module.

    Returns:
        None for the name of a stored parameter; a warning for a name that has lost
        more than its suffix, as `a.weights_proj.weight` becomes `as_proj` where every
        `.weight` is removed; a note for all others.

    """
    if index is None:
        return Severity.NOTE
    if text in index:
        return None
    return Severity.WARNING if text in index.derived(_spoilt) else Severity.NOTE


def _spoilt(index: TensorIndex) -> frozenset[str]:
    """List what is left of names that hold `.weight` more than once without it."""
    return frozenset(
        name.replace(SUFFIX, "") for name in index if name.count(SUFFIX) > 1
    )
