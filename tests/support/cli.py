"""The command line, run in this process, with what it printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from qmanifest.cli import main

if TYPE_CHECKING:
    import pytest


class Run:
    """Runs the command line with some leading words, and remembers what was printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *leading: str) -> None:
        self.capsys = capsys
        self.leading = leading
        self.out = self.err = ""

    def __call__(self, *arguments: object) -> int:
        self.capsys.readouterr()
        code = main([*self.leading, *map(str, arguments)])
        self.out, self.err = self.capsys.readouterr()
        return code

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        assert self.out.isascii()
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]

    @property
    def codes(self) -> set[str]:
        """Codes of the findings, of a report in JSON."""
        return {finding["code"] for finding in self.json["findings"]}
