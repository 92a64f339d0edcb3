"""What every rule, dialect and packing owes: a code, a page, an example, a schema."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import cases

from qmanifest.dialects import DIALECTS
from qmanifest.layouts import LAYOUTS
from qmanifest.packings import PACKINGS
from qmanifest.rules import RULES

if TYPE_CHECKING:
    from qmanifest.rules.base import Rule

ROOT = Path(__file__).parent.parent
VALID, INVALID = cases.load("valid"), cases.load("invalid")
ENOUGH = 4
"""Valid cases that a dialect has at least."""

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.id)


def test_rules_are_in_order_and_each_once() -> None:
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    assert len({rule.name for rule in RULES}) == len(codes)
    assert [code[:3] for code in codes] == sorted(code[:3] for code in codes)


@each_rule
def test_a_rule_has_a_code_and_a_name(rule: Rule) -> None:
    assert re.fullmatch(r"QM\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)


@each_rule
def test_a_rule_says_why_and_what_to_do(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    heads = re.findall(r"^## (.+)$", rule.page, re.MULTILINE)
    assert heads == ["Why it matters", "Fix"]
    parts = re.split(r"^## .+$", rule.page, flags=re.MULTILINE)
    assert all(part.strip() for part in parts)


@each_rule
def test_a_rule_has_a_page(rule: Rule) -> None:
    page = (ROOT / "docs" / "rules" / f"{rule.code}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {rule.code}: {rule.name}\n")


@each_dialect
def test_a_dialect_has_page_example_and_schema(dialect: Any) -> None:  # noqa: ANN401 - any dialect
    example = ROOT / "examples" / dialect.id.replace("-", "_") / dialect.file_name
    assert example.is_file()
    assert (ROOT / "docs" / "dialects" / f"{dialect.id}.md").is_file()
    assert (ROOT / "schemas" / "v1" / f"{dialect.id}.json").is_file()


@each_dialect
def test_a_dialect_s_id_is_its_module_s(dialect: Any) -> None:  # noqa: ANN401 - any dialect
    assert dialect.document.__module__.endswith(f".{dialect.id.replace('-', '_')}")


def test_every_layout_has_a_packing_and_a_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "packings").glob("*.md")}
    assert set(PACKINGS) == set(LAYOUTS) == pages - {"index"}
    assert all(PACKINGS[name].layout is LAYOUTS[name] for name in LAYOUTS)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """In how many valid cases each rule ran and found nothing."""
    counts: Counter[str] = Counter()
    for name, case in VALID.items():
        _, report = case.run(tmp_path_factory.mktemp(name))
        counts.update({*report.checked} - {each.code for each in report.findings})
    return counts


@each_rule
def test_a_rule_has_cases_of_both_kinds(rule: Rule, silent: Counter[str]) -> None:
    lines = [line for case in INVALID.values() for line in case.expect]
    assert any(line.startswith(f"{rule.code} ") for line in lines)
    assert silent[rule.code]


@each_dialect
def test_a_dialect_has_valid_cases(dialect: Any, tmp_path: Path) -> None:  # noqa: ANN401 - any dialect
    opened = [case.run(tmp_path / name)[0] for name, case in VALID.items()]
    assert sum(each.dialect is dialect for each in opened) >= ENOUGH
