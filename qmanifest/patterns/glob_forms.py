"""What a parsed glob can be turned into: its texts, a fast test, an expression."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

from qmanifest.patterns.globs import Choice, Glob, Node, Range, Wild

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def count(glob: Glob) -> int | None:
    """Count the texts that a glob stands for, repeats included; None: no end."""
    total = 1
    for node in glob:
        if isinstance(node, Choice):
            options = [count(option) for option in node.options]
            if None in options:
                return None
            total *= sum(filter(None, options))
        elif isinstance(node, Range):
            total *= node.count
        elif not isinstance(node, str):
            return None
    return total


def expand(glob: Glob) -> Iterator[str]:
    """List the texts that a glob without wildcards stands for."""
    return map("".join, product(*map(_options, glob)))


def _options(node: Node) -> list[str]:
    """List the texts that a node other than a wildcard stands for."""
    if isinstance(node, Choice):
        return [text for option in node.options for text in expand(option)]
    return list(node) if isinstance(node, Range) else [str(node)]


def star_test(glob: Glob) -> Callable[[str], bool] | None:
    """Build the test of a glob of `*` and text alone; None for any other glob.

    Each text is looked for once, at the first place after the one before it, so the
    work is bounded by the length of the name whatever the number of stars.
    """
    only_these = all(isinstance(node, str) or node is Wild.RUN for node in glob)
    if not only_these or Wild.RUN not in glob:
        return None
    head = glob[0] if isinstance(glob[0], str) else ""
    tail = glob[-1] if isinstance(glob[-1], str) else ""
    inner = [node for node in glob[1:-1] if isinstance(node, str)]
    shortest = len(head) + len(tail)
    if not inner:
        return lambda name: (
            len(name) >= shortest and name.startswith(head) and name.endswith(tail)
        )

    def accepts(name: str) -> bool:
        place, stop = len(head), len(name) - len(tail)
        if place > stop or not (name.startswith(head) and name.endswith(tail)):
            return False
        for text in inner:
            place = name.find(text, place, stop)
            if place < 0:
                return False
            place += len(text)
        return True

    return accepts


def to_regex(glob: Glob) -> str:
    """Write a glob as a regular expression of RE2."""
    return "".join(map(_node_regex, glob))


def _node_regex(node: Node) -> str:
    if isinstance(node, str):
        return re.escape(node)
    if isinstance(node, Wild):
        return "(?s:.*)" if node is Wild.RUN else "(?s:.)"
    if isinstance(node, Range):
        return f"(?:{'|'.join(_range_regexes(node))})"
    if isinstance(node, Choice):
        return f"(?:{'|'.join(map(to_regex, node.options))})"
    if not node.spans:
        return "(?s:.)" if node.negated else r"[^\x00-\x{10ffff}]"
    spans = (f"\\x{{{ord(low):x}}}-\\x{{{ord(high):x}}}" for low, high in node.spans)
    return f"[{'^' * node.negated}{''.join(spans)}]"


def _range_regexes(numbers: Range) -> Iterator[str]:
    """Cover a range by digit classes, so that its program stays small."""
    low = str(numbers.low).zfill(numbers.width)
    high = str(numbers.high).zfill(numbers.width)
    while len(low) < len(high):
        yield _digits_regex(low, "9" * len(low))
        low = "1" + "0" * len(low)
    yield _digits_regex(low, high)


def _digits_regex(low: str, high: str) -> str:
    """Cover the numbers from `low` to `high`, which have as many digits."""
    if low[:1] == high[:1]:
        return low[:1] + _digits_regex(low[1:], high[1:]) if low else ""
    rest = len(low) - 1
    first, last = int(low[0]), int(high[0])
    options = []
    if low[1:] != "0" * rest:
        options.append(low[0] + _digits_regex(low[1:], "9" * rest))
        first += 1
    if high[1:] != "9" * rest:
        options.append(high[0] + _digits_regex("0" * rest, high[1:]))
        last -= 1
    if first <= last:
        options.append(f"[{first}-{last}]" + "[0-9]" * rest)
    return f"(?:{'|'.join(options)})"
