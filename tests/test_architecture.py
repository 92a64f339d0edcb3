"""The architecture, as a test: who may import whom, and how large a module may be.

Layers are ranked below. A module imports from lower ranks, and from its own package;
anything else is a row of `SAME_RANK` with its reason, or a failure that names both.
"""

from __future__ import annotations

import ast
import statistics
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "qmanifest"

LAYERS = (
    ("__init__", "findings", "dtypes", "elements"),
    (
        *("errors", "tensors", "schemes", "patterns", "layouts", "spreads"),
        *("families", "evidence", "dimensions", "names", "threads"),
    ),
    ("manifest", "packings"),
    (
        *(
            "sizes",
            "size_promises",
            "size_rows",
            "reading",
            "dialects",
            "backends",
            "writing",
        ),
        "testing",
    ),
    ("kernels",),
    ("checkpoint",),
    ("witness", "flattened", "logical", "weights", "supposed", "made_up"),
    ("rules", "converting"),
    ("check",),
    ("schema", "reports"),
    ("cli",),
    ("__main__",),
)
"""From the bottom up. `__init__` loads the public names on first use, so that it
imports nothing itself and `__version__` can be had by all."""
RANKS = {unit: rank for rank, layer in enumerate(LAYERS) for unit in layer}
SAME_RANK = {
    ("evidence", "families"): "what a tensor is shows by what formats call it",
    ("weights", "logical"): "a weight is handed out with its logical shape",
    ("logical", "flattened"): "a weight's shape may lie in its bytes alone",
    ("supposed", "made_up"): "one subject in two files: which weights, and their parts",
    ("layouts", "errors"): "a shape that fits no words is an error with data",
    ("schemes", "errors"): "a layout's error means that a part has no shape",
    ("schemes", "layouts"): "a scheme names its packing and asks it for shapes",
    ("schemes", "spreads"): "a scheme says which weights share a number",
    ("schemes", "tensors"): "a scheme speaks of shapes",
    ("patterns", "errors"): "an unusable pattern is an error with its reason",
    ("sizes", "size_rows"): "one subject in three files: counting, and the sums",
    ("sizes", "size_promises"): "what is promised is counted apart from what is stored",
    ("size_promises", "size_rows"): "both make the same rows",
    ("backends", "writing"): "torch quantizes by writing's rule, and in its words",
    ("schema", "reports"): "the report's JSON form is a public document",
}
ONLY_IN = {
    "numpy": (
        *("packings", "backends", "writing", "kernels", "converting"),
        *("weights", "flattened", "rules.value_counts"),
    ),
    "numba": ("kernels",),
    "llvmlite": ("kernels",),
    "torch": ("backends.pytorch",),
    "typer": ("cli",),
    "rich": ("cli",),
    "click": ("cli",),
    "jsonschema": ("cli",),
    "re2": ("patterns",),
    "hypothesis": ("testing.strategies",),
    "mlx": (),
}
"""Third-party modules, and the parts of the package that may import them."""
LINES = 400
MEDIAN_LINES = 120
FUNCTION_LINES = 60


class Import(NamedTuple):
    """One import statement, as far as the layers care."""

    module: str
    imported: str


def modules() -> dict[str, Path]:
    """Give every module's file by its name without `qmanifest.`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if len(parts) > 1 and parts[-1] == "__init__":
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk over a tree, past what is there for type checkers alone."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and is_type_checking(child):
            for alternative in child.orelse:
                yield alternative
                yield from nodes(alternative)
            continue
        yield child
        yield from nodes(child)


@cache
def imports() -> tuple[Import, ...]:
    """List every import of every module at run time, wherever it stands."""
    found = []
    for module, path in modules().items():
        for node in nodes(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found += [Import(module, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module} has a relative import"
                assert node.module is not None
                found += [
                    Import(module, f"{node.module}.{alias.name}")
                    for alias in node.names
                ]
    return tuple(found)


def own(name: str) -> str | None:
    """Name an imported module of the package without `qmanifest.`, else None."""
    return name.removeprefix("qmanifest.") if name.startswith("qmanifest.") else None


def unit(module: str) -> str:
    return module.partition(".")[0]


def is_within(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")


def inner_imports() -> Iterator[tuple[str, str]]:
    """Walk over the imports between modules of the package."""
    for each in imports():
        target = own(each.imported)
        if target is not None:
            yield each.module, target if unit(target) in RANKS else "__init__"


def test_every_module_has_a_layer() -> None:
    assert {unit(module) for module in modules()} == set(RANKS)


def test_imports_go_down() -> None:
    wrong = {
        f"{unit(module)} must not import {unit(target)} (in {module})"
        for module, target in inner_imports()
        if unit(module) != unit(target)
        and RANKS[unit(target)] >= RANKS[unit(module)]
        and (unit(module), unit(target)) not in SAME_RANK
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_every_exception_is_needed() -> None:
    used = {(unit(module), unit(target)) for module, target in inner_imports()}
    assert not SAME_RANK.keys() - used
    assert all(RANKS[one] == RANKS[two] for one, two in SAME_RANK)


def test_no_dialect_imports_another() -> None:
    from qmanifest.dialects import DIALECTS

    ids = {each.id.replace("-", "_") for each in DIALECTS}
    assert ids <= {path.stem for path in (PACKAGE / "dialects").iterdir()}
    wrong = {
        f"dialect {module} must not import dialect {target}"
        for module, target in inner_imports()
        for one in ids
        for two in ids - {one}
        if is_within(module, f"dialects.{one}") and is_within(target, f"dialects.{two}")
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize(
    ("importer", "imported", "reason"),
    [
        ("rules", "dialects", "a rule holds for every dialect or is none"),
        ("dialects", "packings", "dialects do shape arithmetic, by layouts"),
        ("dialects", "rules", "what is wrong with a document is a defect"),
        ("reading", "dialects", "files are read before anyone knows whose they are"),
        ("reports", "dialects", "a report has only what rules said"),
    ],
)
def test_forbidden_pairs(importer: str, imported: str, reason: str) -> None:
    wrong = {
        f"{module} must not import {target}: {reason}"
        for module, target in inner_imports()
        if is_within(module, importer) and is_within(target, imported)
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("library", ONLY_IN)
def test_libraries_stay_in_their_place(library: str) -> None:
    wrong = {
        f"{each.module} must not import {library}"
        for each in imports()
        if is_within(each.imported, library)
        and not any(is_within(each.module, part) for part in ONLY_IN[library])
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize(
    "module",
    [
        *("pickle", "marshal", "shelve", "mmap"),
        *("socket", "ssl", "http", "urllib.request", "requests"),
    ],
)
def test_nothing_unpickles_maps_or_fetches(module: str) -> None:
    users = {each.module for each in imports() if is_within(each.imported, module)}
    assert not users


def test_the_search_sees_what_it_should() -> None:
    tree = ast.parse(
        "if TYPE_CHECKING:\n    import a\nelse:\n    import b\ndef f():\n    import c\n"
    )
    found = [
        alias.name
        for node in nodes(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    assert found == ["b", "c"]


def test_modules_are_small() -> None:
    lines = {
        module: len(path.read_text(encoding="utf-8").splitlines())
        for module, path in modules().items()
    }
    large = {module: count for module, count in lines.items() if count > LINES}
    assert not large
    assert statistics.median(lines.values()) <= MEDIAN_LINES


def test_functions_are_small() -> None:
    large = {}
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno is not None
                count = node.end_lineno - node.lineno + 1
                if count > FUNCTION_LINES:
                    large[f"{module}.{node.name}"] = count
    assert not large


def test_every_module_says_what_it_is() -> None:
    silent = [
        module
        for module, path in modules().items()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent
