"""QM505: that bits which belong to no code are zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity
from qmanifest.layouts import LAYOUTS
from qmanifest.layouts.rows import RowLayout
from qmanifest.layouts.turned import TurnedLayout
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.fitting import fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.layouts import Layout
    from qmanifest.rules.fit import Fit


@rule("QM505", "padding", Severity.WARNING, needs=Depth.DATA)
def padding(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Bits at the end of a row, after its last code, are not zero.

    ## Why it matters
    The codes are of another width or another order than the config says, or the
    bytes are another tensor's.

    ## Fix
    Convert the layer again.
    """
    for fit in fits(checkpoint):
        scheme = fit.weight.scheme
        words = _padded(LAYOUTS.get(scheme.pack))
        if words and fit.shape and fit.fault is None:
            row, down = words
            used = fit.shape[-1] * scheme.bits % row.word_bits
            if used:
                yield from _tails(checkpoint, fit, used, down=down)


def _padded(layout: Layout | None) -> tuple[RowLayout, bool] | None:
    """Say how codes follow each other along the inputs, where words may be padded.

    The words of an output follow each other along the last axis, or, where that is
    true beside the layout, along the last but one.
    """
    if isinstance(layout, RowLayout) and layout.padded:
        return layout, False
    if isinstance(layout, TurnedLayout) and layout.row.padded and layout.is_turned:
        return (layout.row, True) if layout.along == "inputs" else None
    return None


def _tails(
    checkpoint: Checkpoint, fit: Fit, used: int, *, down: bool
) -> Iterator[Problem]:
    """Look at the last word of every output, of which `used` bits are codes."""
    stored, codes = fit.bytes_of("codes"), fit.codes
    if not stored:
        return
    words = memoryview(stored).cast("I")
    size, count = (codes.shape[-1], codes.shape[-2]) if down else (1, codes.shape[-1])
    ends = range(size * count, len(words) + 1, size * count)
    last = [word for end in ends for word in words[end - size : end]]
    wrong = sum(word >> used > 0 for word in last)
    if wrong:
        yield Problem(
            f"{wrong:,} of {len(last):,} outputs of {codes.name!r} ({codes}) have "
            f"bits set after their last code: {fit.weight.name!r} is "
            f"{list(fit.shape or ())} in {fit.weight.scheme.bits} bits",
            (
                Location(
                    codes.file, tensor=codes.name, byte_range=(codes.begin, codes.end)
                ),
                Location(checkpoint.config_name, fit.weight.pointer),
            ),
            expected=0,
            actual=wrong,
            hint="convert the layer again",
        )


RULES = (padding,)
