"""Bar 9: 1,000 globs over 100,000 names, and patterns that are made to hang."""

from __future__ import annotations

import re
from fnmatch import translate
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Final

from benchmarks.harness import Contender, Contest, Limit, Row, faster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES: Final = 100_000
SAMPLE: Final = 2_500
"""Names that the alternation is tried on; its time is proportional to them."""
HOSTILE: Final = (
    "*a*a*a*a*a*a*b",
    "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
    "re:(a+)+$",
    "re:(a|a)*b",
    "re:(.*a){12}b",
)
MOST_SECONDS: Final = 0.010


def _names() -> list[str]:
    """Name the tensors of a mixture of experts."""
    projections = ("gate_proj", "up_proj", "down_proj", "router")
    every = product(range(50), range(250), projections, ("weight", "scales"))
    return [
        f"model.layers.{layer}.mlp.experts.{expert}.{projection}.{part}"
        for layer, expert, projection, part in every
    ]


def _globs() -> list[str]:
    """Write 1,000 globs of the shapes that configs have; half match something."""
    forms = (
        "model.layers.{0}.mlp.experts.{1}.*",
        "*.experts.{1}.down_proj.*",
        "model.layers.{0}.*.router.weight",
        "*layers.{0}.self_attn.q_proj*",
        "model.layers.{0}.mlp.experts.{1}?.up_proj.weight",
    )
    return [forms[n % len(forms)].format(n % 60, n % 300) for n in range(1_000)]


def _slowest(text: str) -> float:
    """Match one hostile pattern with one name, and give the least time of three."""
    from qmanifest.patterns import match, read_entry

    pattern, name = read_entry(text), "a" * 120 + "c"
    times = []
    for _ in range(3):
        began = perf_counter()
        match([pattern], [name])
        times.append(perf_counter() - began)
    return min(times)


def _setup(_: Path) -> Contest:
    from qmanifest.patterns import Matches, match, read_entry

    names, globs = _names(), _globs()
    assert len(names) == NAMES
    sample = names[:: NAMES // SAMPLE]
    patterns = [read_entry(glob) for glob in globs]
    one = re.compile("|".join(translate(glob) for glob in globs))

    def matched() -> Matches:
        return match(patterns, names)

    def alternation() -> list[str]:
        return [name for name in sample if one.match(name)]

    def limits() -> Iterator[Limit]:
        found = matched()
        claimed = {name for name in sample if found.claims(name)}
        yield Limit("names hit otherwise", len(claimed ^ set(alternation())), 0)
        yield Limit(
            "seconds of a hostile pattern", max(map(_slowest, HOSTILE)), MOST_SECONDS
        )

    return Contest(
        Contender(matched),
        {"re alternation": Contender(alternation, scale=NAMES / len(sample))},
        limits,
    )


ROWS: Final = (
    Row("1,000 globs over 100,000 names", 9, (faster("re alternation", 15),), _setup),
)
