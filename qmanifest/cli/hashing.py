"""`qmanifest hash`: the SHA-256 of every shard, to record and to compare."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import say, say_json
from qmanifest.cli.options import ListingOption
from qmanifest.cli.progress import ProgressLine
from qmanifest.cli.values import Listing, UsageError, require

EXAMPLES: Final = """\
  qmanifest hash ./model > model.sha256
  (cd ./model && sha256sum --check) < model.sha256
  qmanifest hash ./model --format json"""

PathArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="PATH", help="The checkpoint, or one shard.")
]


def hashing(path: PathArgument, output_format: ListingOption = Listing.TEXT) -> None:
    """Print the SHA-256 of every shard.

    As the Hub shows it, and in the lines that 'sha256sum --check' reads.
    """
    from qmanifest.reading.hashing import checksum_lines, hash_shards
    from qmanifest.threads import thread_count

    require(path)
    with ProgressLine() as progress:
        digests = hash_shards(path, thread_count(), progress)
    if not digests:
        raise UsageError(f"{str(path)!r} has no safetensors file. Check the path.")
    if output_format is Listing.JSON:
        say_json([asdict(each) for each in digests])
    else:
        say(*checksum_lines(digests))
