"""Whether a weight is stored just as promised, told by dtypes and shapes.

Nothing here looks at a name, so that one answer serves all weights that look alike: a
model of a hundred thousand tensors has a handful of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from qmanifest.layouts import ROWS
from qmanifest.rules.readings import BITS, GROUPS, fitting_pairs
from qmanifest.schemes import Affine, Microscaling

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

Verdict: TypeAlias = Literal["sound", "unproven", "doubtful"]
"""`sound`: no rule has anything to say. `unproven`: none but QM305, since other bits
fit the shapes as well. `doubtful`: the rules have to look, and may find nothing."""


def judge(
    scheme: Scheme,
    width: int | None,
    rows: Shape | None,
    codes: tuple[str, Shape],
    scales: tuple[str, Shape],
    *,
    with_biases: bool,
) -> Verdict:
    """Judge a weight by what it looks like.

    Args:
        scheme: what is promised.
        width: inputs, as a witness has them; None without one.
        rows: the promised shape without its inputs; None where there is none.
        codes: dtype and shape as stored.
        scales: dtype and shape as stored.
        with_biases: whether there are biases, of the scales' dtype and shape.

    """
    (words, codes_shape), (numbers, scales_shape) = codes, scales
    layout, group = ROWS[scheme.pack], scheme.group_size
    if not _is_of(scheme, words, numbers, with_biases=with_biases):
        return "doubtful"
    stored_rows = codes_shape[:-1]
    if not stored_rows or stored_rows != scales_shape[:-1]:
        return "doubtful"
    if rows is not None and rows != stored_rows:
        return "doubtful"
    row_bits, groups = codes_shape[-1] * layout.word_bits, scales_shape[-1]
    inputs = groups * group
    if not inputs or width not in {None, inputs} or row_bits != inputs * scheme.bits:
        return "doubtful"
    if width is not None or isinstance(scheme, Microscaling):
        return "sound"
    several = len(fitting_pairs(layout, scheme.bits * group)) > 1
    return "unproven" if several else "sound"


def _is_of(scheme: Scheme, words: str, numbers: str, *, with_biases: bool) -> bool:
    """Whether a scheme that exists has these dtypes, and biases just where they are."""
    layout = ROWS[scheme.pack]
    if words != layout.word_dtype or scheme.bits not in layout.bits:
        return False
    if isinstance(scheme, Affine):
        known = scheme.bits in BITS and scheme.group_size in GROUPS
        return known and with_biases and numbers in scheme.scale
    if isinstance(scheme, Microscaling):
        return not with_biases and numbers == "U8" and scheme.global_scale == "none"
    return False
