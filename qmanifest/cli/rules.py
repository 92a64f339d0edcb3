"""`qmanifest rules`: the table of everything that is checked."""

from __future__ import annotations

from typing import Final

from qmanifest.cli.console import say_json, say_table
from qmanifest.cli.options import ListingOption
from qmanifest.cli.values import Listing

EXAMPLES: Final = """\
  qmanifest rules
  qmanifest rules --format json
  qmanifest explain QM203"""


def rules(
    output_format: ListingOption = Listing.TEXT,
) -> None:
    """List every rule.

    With its code, name, usual severity, and how much of a checkpoint it has to see.
    """
    from qmanifest.rules import RULES

    listed = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity.value,
            "needs": rule.needs.name.lower(),
            "summary": rule.summary,
        }
        for rule in sorted(RULES, key=lambda each: each.code)
    ]
    if output_format is Listing.JSON:
        say_json(listed)
    else:
        say_table([tuple(rule.values()) for rule in listed])
