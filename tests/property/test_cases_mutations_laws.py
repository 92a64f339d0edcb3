"""Checkpoints that are nearly right: every rule, size and decoder ends in an answer."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from support import cases
from support.cases import Case, File

from qmanifest import CheckpointWeights
from qmanifest.backends.reference import dequantize
from qmanifest.check import check
from qmanifest.errors import BackendError, PackingError
from qmanifest.reading.files import FileProblem
from qmanifest.sizes import stored_sizes

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.checkpoint import Checkpoint

DTYPES: Final = ("U8", "I8", "I32", "F16", "BF16", "F32", "F8_E4M3", "F8_E8M0", "I16")
EVERY: Final = {
    name: case
    for verdict in ("valid", "invalid")
    for name, case in cases.load(verdict).items()
    if case.tables and not case.config_only and not case.base
}
RUNS: Final = 120


def mutated(table: str, random: Random) -> str:
    """Drop a tensor, or change its dtype or a side of its shape."""
    lines = [line for line in table.splitlines() if line.strip()]
    at = random.randrange(len(lines))
    name, dtype, *rest = (word for word in lines[at].split() if "=" not in word)
    if random.random() < 0.25:
        return "\n".join(lines[:at] + lines[at + 1 :])
    if dtype in DTYPES and random.random() < 0.4:
        dtype = random.choice(DTYPES)
    elif rest and rest[-1][0].isdigit() and "/" not in rest[-1]:
        sides = rest[-1].split("x")
        side = random.randrange(len(sides))
        own = int(sides[side])
        sides[side] = str(random.choice((0, 1, 2 * own, own // 2, own + 1)))
        rest[-1] = random.choice(("x".join(sides), "x".join([*sides, "1"]), "scalar"))
    lines[at] = " ".join((name, dtype, *rest))
    return "\n".join(lines)


def changed(case: Case, random: Random) -> Case:
    """Change one table of a case."""
    name = random.choice(sorted(case.tables))
    table = case.tables[name]
    file = table if isinstance(table, File) else File(table=table)
    if not file.table.strip():
        return case
    new = file.model_copy(update={"table": mutated(file.table, random)})
    return case.model_copy(update={"tables": {**case.tables, name: new}})


def use(opened: Checkpoint) -> None:
    """Judge, measure and rebuild."""
    check(opened, deep=True)
    for component, store in opened.found():
        assert stored_sizes(store.index, component).total >= 0
        source = CheckpointWeights(opened, component.name)
        for name in source.names():
            try:
                scheme, shape = source.weight(name)
                made = dequantize(scheme, source.stored(name), shape)
            except (BackendError, PackingError, FileProblem):
                continue  # said as it should be
            assert made.shape == shape


@pytest.mark.parametrize("seed", range(6))
def test_every_rule_ends(seed: int, tmp_path: Path) -> None:
    random, ran = Random(seed), 0  # noqa: S311 - no secret
    for number in range(RUNS):
        case = changed(EVERY[random.choice(sorted(EVERY))], random)
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            case.build(folder)
        except (ValueError, ArithmeticError):
            continue  # a line of a scheme that no table can make
        use(case.open(folder))
        ran += 1
    assert ran > RUNS // 2
