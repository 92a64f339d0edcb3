"""The typer application: every command in the tuple `COMMANDS`.

To add a command, write a file with a function and its examples, and add a row here.
Command files import the library inside of the function, so that `--help` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from qmanifest.cli import (
    demo,
    dialects,
    explain,
    hashing,
    match,
    pack,
    rules,
    schema,
    size,
    unpack,
    validate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

COMMANDS: Final[tuple[tuple[str, Callable[..., None], str], ...]] = (
    ("validate", validate.validate, validate.EXAMPLES),
    ("size", size.size, size.EXAMPLES),
    ("match", match.match, match.EXAMPLES),
    ("explain", explain.explain, explain.EXAMPLES),
    ("rules", rules.rules, rules.EXAMPLES),
    ("dialects", dialects.dialects, dialects.EXAMPLES),
    ("schema", schema.schema, schema.EXAMPLES),
    ("pack", pack.pack, pack.EXAMPLES),
    ("unpack", unpack.unpack, unpack.EXAMPLES),
    ("hash", hashing.hashing, hashing.EXAMPLES),
    ("demo", demo.demo, demo.EXAMPLES),
)
"""Name, function, and the examples at the end of its help."""

app: Final = typer.Typer(
    name="qmanifest",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nStart with:\n  qmanifest demo ./a --broken\n  qmanifest validate ./a",
)
for _name, _function, _examples in COMMANDS:
    app.command(_name, epilog=f"\b\nExamples:\n{_examples}")(_function)


def _version(wanted: bool) -> None:  # typer's callbacks take the value alone
    if wanted:
        from qmanifest import __version__

        typer.echo(f"qmanifest {__version__}")
        raise typer.Exit


@app.callback()
def qmanifest(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show a traceback when the tool itself fails."),
    ] = False,
) -> None:
    """Prove that a quantized checkpoint is what its config says."""
    del version, debug  # one acts by its callback, `main` takes the other
