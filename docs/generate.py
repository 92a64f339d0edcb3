"""Write the pages that the code already says: rules, and the tables of the indexes.

    python docs/generate.py

A rule's page is its docstring. In pages written by hand, what stands between two
`generated` marks is replaced. A test compares all of it with what is committed.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qmanifest.dialects import DIALECTS
from qmanifest.findings import Severity
from qmanifest.layouts import LAYOUTS
from qmanifest.rules import RULES
from qmanifest.rules.base import Depth

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qmanifest.rules.base import Rule

ROOT: Final = Path(__file__).parent.parent
INTRODUCTION: Final = (
    "Codes are never reused or renumbered. `--select` and `--ignore` take codes or the "
    "start of one: `QM2` is the whole family. `qmanifest explain QM201` prints a "
    "rule's page."
)
FAMILIES: Final = {
    "QM0": "Files",
    "QM1": "Config",
    "QM2": "Names",
    "QM3": "Layout",
    "QM4": "Shards and indexes",
    "QM5": "Values",
    "QM6": "Reference",
    "QM7": "Engines",
    "QM8": "Across files",
    "QM9": "Advice",
}
"""What each hundred of codes is about."""
DEPTHS: Final = {
    Depth.FILES: "the files themselves",
    Depth.MANIFEST: "the config",
    Depth.HEADERS: "the config and every shard's header",
    Depth.DATA: "the tensors' bytes: it runs with `--deep` only",
    Depth.REFERENCE: "the 16-bit original: it runs with `--base` only",
}
SEVERITIES: Final = {
    Severity.ERROR: "An error, unless the text below says otherwise",
    Severity.WARNING: "A warning, unless the text below says otherwise",
    Severity.NOTE: "A note, unless the text below says otherwise",
}


def pages() -> dict[Path, str]:
    """Give the text of every generated file by its path."""
    found = {ROOT / "docs" / "rules" / "index.md": rule_index()}
    found |= {ROOT / "docs" / "rules" / f"{r.code}.md": rule_page(r) for r in RULES}
    return found | {
        path: _between(path, table)
        for path, table in (
            (ROOT / "docs" / "dialects" / "index.md", dialect_table()),
            (ROOT / "docs" / "packings" / "index.md", packing_table()),
            (ROOT / "mkdocs.yml", navigation()),
        )
    }


def rule_page(rule: Rule) -> str:
    """Write one rule's page: its docstring, and when it runs."""
    summary, _, rest = rule.page.partition("\n")
    facts = [f"{SEVERITIES[rule.severity]}. It needs {DEPTHS[rule.needs]}."]
    if rule.absence:
        facts.append("It is skipped while a shard cannot be read.")
    if rule.any_files:
        facts.append("It also runs where no config is found.")
    return (
        f"# {rule.code}: {rule.name}\n\n{summary}\n{rest.rstrip()}\n\n"
        f"## When it runs\n\n{' '.join(facts)}\n\n"
        f"Run it alone with `--select {rule.code}`, leave it out with "
        f"`--ignore {rule.code}`.\n"
    )


def rule_index() -> str:
    """Write the table of all rules, by family."""
    lines = [
        "# Rules",
        "",
        INTRODUCTION,
    ]
    for family, rules in groupby(RULES, key=lambda rule: rule.family):
        rows = [
            (f"[{r.code}]({r.code}.md)", r.name, r.severity, _needs(r), r.summary)
            for r in rules
        ]
        head = ("Code", "Name", "Severity", "Needs", "What it finds")
        lines += ["", f"## {family}: {FAMILIES[family]}", "", *_table(head, rows)]
    return "\n".join(lines) + "\n"


def _needs(rule: Rule) -> str:
    return rule.needs.name.lower()


def navigation() -> str:
    """List the pages of dialects, packings and rules for mkdocs."""
    folders = (
        ("Dialects", "dialects", [each.id for each in DIALECTS]),
        ("Packings", "packings", list(LAYOUTS)),
        ("Rules", "rules", [rule.code for rule in RULES]),
    )
    lines = []
    for title, folder, names in folders:
        lines += [f"  - {title}:", f"      - {folder}/index.md"]
        lines += [f"      - {name}: {folder}/{name}.md" for name in names]
    return "\n".join(lines)


def dialect_table() -> str:
    """List the dialects."""
    rows = [
        (
            f"[`{each.id}`]({each.id}.md)",
            each.title,
            f"`{each.file_name}`"
            + "".join(f", `{key}`" for key in each.blocks[:1])
            + (f" and its twin `{each.blocks[1]}`" if each.blocks[1:] else ""),
            "yes" if each.emits else "no",
            each.decodes,
        )
        for each in DIALECTS
    ]
    return "\n".join(
        _table(("Dialect", "What it is", "Found in", "Written", "Decoded"), rows)
    )


def packing_table() -> str:
    """List the packings."""
    rows = [
        (
            f"[`{each.id}`]({each.id}.md)",
            f"`{each.word_dtype}`",
            ", ".join(map(str, each.bits)),
        )
        for each in LAYOUTS.values()
    ]
    return "\n".join(_table(("Packing", "Word", "Bits of a code"), rows))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a Markdown table."""
    texts = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in texts]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]


def _between(path: Path, text: str) -> str:
    """Put a text between the marks of a page that is written by hand."""
    marked = re.compile(
        r"(generated: begin[^\n]*\n).*?(\n[^\n]*generated: end)", re.DOTALL
    )
    page, count = marked.subn(
        lambda found: f"{found[1]}{text}{found[2]}", path.read_text(encoding="utf-8")
    )
    if count != 1:
        raise SystemExit(f"{path}: expected one pair of marks, found {count}")
    return page


def main() -> None:
    """Write every page that differs."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
