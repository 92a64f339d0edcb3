"""QM505: that bits which belong to no code are zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity
from qmanifest.layouts import ROWS
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
        layout = ROWS.get(fit.weight.scheme.pack)
        if layout and layout.padded and fit.shape and fit.fault is None:
            used = fit.shape[-1] * fit.weight.scheme.bits % layout.word_bits
            if used:
                yield from _tails(checkpoint, fit, used)


def _tails(checkpoint: Checkpoint, fit: Fit, used: int) -> Iterator[Problem]:
    """Look at the last word of every row, of which `used` bits are codes."""
    stored, codes = fit.bytes_of("codes"), fit.codes
    words = codes.shape[-1]
    if not stored or not words:
        return
    last = memoryview(stored).cast("I")[words - 1 :: words].tolist()
    wrong = sum(word >> used > 0 for word in last)
    if wrong:
        yield Problem(
            f"{wrong:,} of {len(last):,} rows of {codes.name!r} ({codes}) have bits "
            f"set after their last code, {fit.shape} at {fit.weight.scheme.bits} bits",
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
