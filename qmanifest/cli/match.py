"""`qmanifest match`: which names the entries of a config claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import say, say_json
from qmanifest.cli.options import ListingOption
from qmanifest.cli.values import Listing, UsageError, require

if TYPE_CHECKING:
    from qmanifest.cli.ledger import Ledger

EXAMPLES: Final = """\
  qmanifest match --config quant_config.json --names ./model
  qmanifest match 'layers.{0..3}.*' 're:.*norm.*' --names names.txt
  qmanifest match --config quant_config.json --fold"""

PatternsArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATTERN",
        help="Names, globs or re: patterns to try.",
        show_default=False,
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Try every entry of this config.")
]
NamesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="CHECKPOINT|FILE",
        help="Whose names: a checkpoint, an index file, or a list with one a line; "
        "without it those that the config spells out.",
    ),
]
FoldOption: TypeAlias = Annotated[
    bool,
    typer.Option("--fold", help="Print the shortest patterns for each list instead."),
]


def match(
    patterns: PatternsArgument = None,
    config: ConfigOption = None,
    names: NamesOption = None,
    fold: FoldOption = False,
    output_format: ListingOption = Listing.TEXT,
) -> None:
    """Show what every entry of a config matches.

    Also what matches nothing, what is claimed twice, and what no entry claims.

    Exit code 1: names were given and some entry matches none of them.
    """
    from qmanifest.cli.folding import folds_of
    from qmanifest.cli.ledger import text_of

    require(config, names)
    ledgers = _ledgers(patterns or [], config, names)
    if fold:
        folds = [each for ledger in ledgers for each in folds_of(ledger)]
        if output_format is Listing.JSON:
            say_json([each.as_json() for each in folds])
        else:
            say(*(line for each in folds for line in each.as_text()))
            if names is None:
                say("exact among the names in the config; --names has those of a model")
    elif output_format is Listing.JSON:
        say_json([ledger.as_json() for ledger in ledgers])
    else:
        say(*(line for ledger in ledgers for line in text_of(ledger)))
    dead = names is not None and any(ledger.dead for ledger in ledgers)
    raise typer.Exit(int(dead))


def _ledgers(
    patterns: list[str], config: Path | None, names: Path | None
) -> list[Ledger]:
    """Match a config's entries, or patterns of the command line."""
    from qmanifest.cli.ledger import Line, ledger_of, ledgers_of_config
    from qmanifest.cli.names import read_names
    from qmanifest.patterns import read_entry

    if patterns and config is not None:
        raise UsageError("patterns and --config do not go together. Give one of them.")
    if config is not None:
        ledgers = ledgers_of_config(config, names)
        if not ledgers:
            raise UsageError(f"{str(names)!r} has none of the config's components.")
        return ledgers
    if not patterns or names is None:
        raise UsageError("nothing to match. Give --config, or patterns and --names.")
    lines = [
        Line(f"pattern {number}", "try", read_entry(text))
        for number, text in enumerate(patterns, 1)
    ]
    return [ledger_of("", lines, read_names(names))]
