"""The shared corpus of hostile and odd files gets the right verdict from the readers.

Skipped where the corpus is not beside the repository. Cases that only a config or a
rule can judge are judged elsewhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qmanifest.findings import Defect, Severity
from qmanifest.reading.shards import list_folder

CORPUS = Path(__file__).parents[3] / "shared" / "malformed" / "corpus.py"
KINDS = (
    "frame",
    "header-json",
    "shape-dtype",
    "offsets",
    "names",
    "valid",
    "resource",
    "index-fs",
)
NOT_FOR_READERS = {
    "nm-cfg-nfd",  # the config names another tensor
    "ix-missing-shard",  # rules judge what is absent
    "ix-unlisted",
    "fs-fifo-config",  # about the config
    "fs-config-dev-zero",
    "fs-no-weights",
}


def defects_of(root: Path) -> list[Defect]:
    folder = list_folder(root)
    found = list(folder.defects)
    for each in folder.sets:
        found += each.defects
        found += each.index_file.defects if each.index_file else ()
        found += [defect for header in each.headers for defect in header.defects]
    return found


def line(defect: Defect) -> str:
    place = defect.problem.at[0]
    return f"{place.file}#{place.pointer} {place.tensor}: {defect.problem.message}"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    if not CORPUS.exists():
        pytest.skip("the shared corpus is not here")
    root = tmp_path_factory.mktemp("corpus") / "out"
    subprocess.run([sys.executable, str(CORPUS), str(root)], check=True, text=True)
    return root, json.loads((root / "manifest.json").read_text())["cases"]


def test_every_case_gets_its_verdict(corpus: tuple[Path, list[Any]]) -> None:
    root, cases = corpus
    judged = 0
    for case in cases:
        if case["kind"] not in KINDS or case["id"] in NOT_FOR_READERS:
            continue
        found = defects_of(root / case["path"])
        errors = [d for d in found if d.problem.severity in (None, Severity.ERROR)]
        verdict = "reject" if errors else "warn" if found else "accept"
        assert verdict in (case["verdict"], *case["also_ok"]), case["id"]
        text = "\n".join(map(line, errors))
        if verdict == "reject":
            assert all(name in text for name in case["names"]), case["id"]
        judged += 1
    assert judged > 80
