"""The command line: one file per command, and the only place that imports typer.

`main` is where every run starts and ends: it alone decides what is printed when
something fails, and with which exit code.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qmanifest.errors import QManifestError
from qmanifest.reading.collector import collector_paused

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILED: Final = 2
"""Exit code of wrong usage, or where the tool itself failed."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code.

    Args:
        args: what follows the program's name; None takes them from the process.

    """
    arguments = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in arguments
    arguments = [each for each in arguments if each != "--debug"]
    _print_anything()
    if args is None:
        atexit.register(gc.freeze)  # or the exit itself looks for cycles among all
        # Or pydantic searches all that is installed for hooks into other people's code.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as stop:
        if getattr(stop, "code", 1) != 1:  # typer's completion is done
            raise
        _discard_output()  # whoever reads has seen enough
        return FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # the last line of defence: nothing else may pass
        if debug:
            raise
        return _fail(_message(error))
    return _fail(["interrupted"], code) if code == INTERRUPTED else code


def _run(arguments: list[str]) -> int:
    """Run a plain `validate` at once, and let typer read any other arguments."""
    from qmanifest.cli.plain import read_plain

    plain = read_plain(arguments)
    if plain is not None:
        with collector_paused():  # loading the library makes no garbage either
            from qmanifest.cli.validating import run

            return run(**plain)
    from qmanifest.cli.app import app

    # Outside of its standalone mode typer gives back the code of `typer.Exit`.
    code = app(args=arguments, prog_name="qmanifest", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _message(error: Exception) -> list[str]:
    """Say what failed in one line; only our own messages have more on purpose."""
    if isinstance(error, QManifestError):
        return str(error).split("\n")
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return [f"{place}{error.strerror or error}"]
    usage = getattr(error, "format_message", None)  # typer's own, under any name
    if usage is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "qmanifest"
        return [f"{usage()} Try '{command} --help'."]
    return [f"{type(error).__name__}: {error} (--debug shows where)"]


def _fail(message: list[str], code: int = FAILED) -> int:
    """Print why there is no result; further lines of a message are indented."""
    from qmanifest.reports.printable import printable

    lines = [printable(line.strip()) for line in message]
    sys.stderr.write("qmanifest: " + "\n  ".join(lines) + "\n")
    return code


def _print_anything() -> None:
    """Keep characters that the terminal's encoding lacks from failing the run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send what is still unwritten nowhere, or Python complains at its exit."""
    with suppress(OSError), Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
