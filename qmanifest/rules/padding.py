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
    from qmanifest.rules.fitting import Fit


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
        scheme, layout = fit.weight.scheme, LAYOUTS.get(fit.weight.scheme.pack)
        down = isinstance(layout, TurnedLayout) and layout.is_turned
        row = layout.row if isinstance(layout, TurnedLayout) and down else layout
        padded = isinstance(row, RowLayout) and row.padded
        along = not isinstance(layout, TurnedLayout) or layout.along == "inputs"
        if padded and along and fit.shape and fit.fault is None:
            used = fit.shape[-1] * scheme.bits % row.word_bits
            if used:
                yield from _tails(checkpoint, fit, used, down=down)


def _tails(
    checkpoint: Checkpoint, fit: Fit, used: int, *, down: bool
) -> Iterator[Problem]:
    """Look at the last word of every output, of which `used` bits are codes.

    With `down` the words of an output follow each other along the last axis but one.
    """
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
            f"{wrong:,} of {len(last):,} outputs of {codes.name!r} ({codes}) have bits "
            f"set after their last code: {fit.weight.name!r} is {list(fit.shape or ())} "
            f"in {fit.weight.scheme.bits} bits",
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
