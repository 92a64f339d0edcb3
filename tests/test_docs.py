"""The documentation says what the code says."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import qmanifest
from qmanifest.check import check
from qmanifest.checkpoint import open_config
from qmanifest.cli import main
from qmanifest.dialects import DIALECTS
from qmanifest.layouts import LAYOUTS
from qmanifest.reading import limits
from qmanifest.rules import RULES

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))
TEXTS = (*PAGES, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
CODE = re.compile(r"\bQM\d{3}\b")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def generator() -> ModuleType:
    """Load docs/generate.py, which is a script."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module


GENERATED: dict[Path, str] = generator().pages()


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_text_is_committed(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == GENERATED[path], "run `make docs`"


def test_no_rule_page_is_left_over() -> None:
    pages = {path.stem for path in (DOCS / "rules").glob("*.md")}
    assert pages == {"index", *(rule.code for rule in RULES)}


def test_every_page_is_in_the_navigation() -> None:
    navigation = read("mkdocs.yml").partition("\nnav:")[2]
    named = set(re.findall(r"[\w/-]+\.md", navigation))
    assert named == {path.removeprefix("docs/") for path in PAGES}


@pytest.mark.parametrize("path", TEXTS)
def test_codes_exist(path: str) -> None:
    known = {rule.code for rule in RULES}
    assert set(CODE.findall(read(path))) <= known


@pytest.mark.parametrize("path", TEXTS)
def test_links_between_files_lead_somewhere(path: str) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", read(path)):
        if "://" not in link:
            assert (ROOT / path).parent.joinpath(link).exists(), link


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.id)
def test_every_key_of_a_dialect_is_on_its_page(dialect: Any) -> None:  # noqa: ANN401 - any dialect
    page = read(f"docs/dialects/{dialect.id}.md")
    fields = dialect.document.model_fields.items()
    keys = {field.alias or name for name, field in fields} - {"$schema"}
    keys |= set(dialect.document.vocabulary)
    assert not {key for key in keys if f"`{key}`" not in page}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_packing_has_a_page(layout: str) -> None:
    assert f"`{layout}`" in read(f"docs/packings/{layout}.md")


def test_every_limit_is_documented() -> None:
    page = read("docs/untrusted-input.md")
    documented = set(re.findall(r"[\d,]+(?: MiB)?", page))
    for name, value in vars(limits).items():
        if name.startswith("MAX_"):
            assert documented & {f"{value:,}", f"{value / 2**20:g} MiB"}, name


def test_every_command_is_in_the_readme() -> None:
    from qmanifest.cli.app import COMMANDS

    text = read("README.md")
    assert not [name for name, *_ in COMMANDS if f"`qmanifest {name}" not in text]


def blocks(path: str, language: str) -> list[str]:
    """Give the code blocks of a page in one language, without their indentation."""
    found = re.findall(
        rf"^ *```{language}\n(.*?)^ *```", read(path), re.DOTALL | re.MULTILINE
    )
    return [textwrap.dedent(block) for block in found]


@pytest.mark.parametrize("path", TEXTS)
def test_json_in_pages_is_json(path: str) -> None:
    for block in blocks(path, "json"):
        json.loads(block)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.id)
def test_the_example_on_a_dialect_s_page_is_valid(
    dialect: Any,  # noqa: ANN401 - any dialect
    tmp_path: Path,
) -> None:
    (example,) = blocks(f"docs/dialects/{dialect.id}.md", "json")
    config = tmp_path / dialect.file_name
    config.write_text(example, encoding="utf-8")
    opened = open_config(config)
    assert opened.dialect is dialect
    assert not check(opened).findings


@pytest.mark.parametrize("path", TEXTS)
def test_python_in_pages_imports_what_there_is(path: str) -> None:
    for block in blocks(path, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Attribute):
                of_package = ast.unparse(node.value) == "qmanifest"
                assert not of_package or hasattr(qmanifest, node.attr)


def session(path: str) -> list[tuple[str, list[str]]]:
    """Read the commands of a page's consoles, each with the output shown below it."""
    commands: list[tuple[str, list[str]]] = []
    for block in blocks(path, "console"):
        for line in block.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                commands.append((line.removeprefix("$ "), []))
            else:
                commands[-1][1].append(line)
    return commands


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Whether output is as shown, where `...` stands for any lines."""
    pattern = "\n".join(re.escape(line) for line in shown)
    return bool(
        re.fullmatch(pattern.replace(r"\.\.\.", ".*"), "\n".join(printed), re.DOTALL)
    )


@pytest.mark.parametrize(
    "path", ["README.md", "docs/getting-started.md", "docs/how-to/size.md"]
)
def test_consoles_show_what_is_printed(
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    code, compared = 0, 0
    for command, shown in session(path):
        program, *arguments = shlex.split(command, comments=True)
        if command == "echo $?":
            assert shown == [str(code)]
        elif program == "qmanifest" and (shown or arguments[0] == "demo"):
            code = main(arguments)
            printed = capsys.readouterr().out.splitlines()
            assert not shown or agrees(shown, printed), "\n".join(printed)
            compared += bool(shown)
    assert compared


def test_commands_in_pages_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {c for path in TEXTS for c, _ in session(path) if c[:9] == "qmanifest"}
    assert commands
    for command in commands:
        name, *arguments = shlex.split(command, comments=True)[1:]
        options = [each.partition("=")[0] for each in arguments if each[:1] == "-"]
        assert main([name, "--help"]) == 0
        usage = capsys.readouterr().out
        assert all(re.search(rf"(?<!\S){each}\b", usage) for each in options), command
