"""Where the choice of kept tensors came from: labels, and counts against the lists."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lowering import dense, lower, of_kind

from qmanifest.findings import DefectKind, Severity

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex


def config(
    kept: list[str], quantized: list[str], scan: dict[str, Any]
) -> dict[str, Any]:
    return {
        "bits": 8,
        "group_size": 32,
        "kept_16bit": kept,
        "tensors": {name: {} for name in quantized},
        "scan": scan,
    }


def explained(
    kept: list[str],
    quantized: list[str],
    one: int,
    two: int,
    index: TensorIndex | None = None,
) -> bool:
    scan = {"keep_backbone": one, "keep_depth": two}
    lowered = lower("tensor-map", config(kept, quantized, scan), index)
    found = of_kind(lowered, DefectKind.PROVENANCE)
    assert len(found) <= 1
    for defect in found:
        assert defect.problem.at[0].pointer == "/scan"
        assert defect.problem.severity is Severity.WARNING
    return not found


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("results/quant-scan-8b64.json", "8b64"),
        ("8b64", "8b64"),
        ("scan_4b32_v2", "4b32"),
        ("scan.4b32.json", "4b32"),
        ("scan-8b32.json", None),
        ("model-7b.json", None),
        ("a8b64", None),
        ("8b64x", None),
        ("108b64", None),
        ("", None),
        ("scan.json", None),
    ],
)
def test_labels_of_another_scheme(file: str, label: str | None) -> None:
    lowered = lower("tensor-map", config([], [], {"file": file}))
    assert [d.problem.actual for d in lowered.defects] == ([label] if label else [])
    for defect in lowered.defects:
        assert defect.kind is DefectKind.LABEL
        assert defect.problem.severity is Severity.NOTE
        assert defect.problem.at[0].pointer == "/scan/file"


@pytest.mark.parametrize("scan", [None, {}, {"keep_backbone": 9}, {"keep_depth": 9}])
def test_nothing_to_compare(scan: dict[str, Any] | None) -> None:
    given_config = config(["a.x"], [], {}) | {"scan": scan}
    assert lower("tensor-map", given_config).defects == ()


KEPT = ["layers.0", "layers.9", "groups.0", "groups.1", "groups.2", "heads.0"]
QUANTIZED = ["layers.1", "layers.2"]


@pytest.mark.parametrize(
    ("one", "two", "right"),
    [
        (2, 4, True),  # exactly
        (4, 2, True),  # the parts may be the other way round
        (2, 5, True),  # the second part keeps all it has
        (2, 999, True),
        (999, 2, True),
        (3, 999, True),  # heads with the layers
        (5, 999, True),  # groups with the layers
        (6, 999, True),  # all in one part
        (1, 999, False),  # layers keep two
        (4, 999, False),
        (7, 999, False),  # more than there are, and yet some are quantized
        (2, 3, False),  # fewer than are kept
        (0, 0, False),
        (1, 5, True),  # heads alone, the rest with the layers
        (10**30, 10**30, False),
        (2, 10**30, True),
    ],
)
def test_counts(one: int, two: int, *, right: bool) -> None:
    assert explained(KEPT, QUANTIZED, one, two) == right


def test_all_kept_and_nothing_quantized() -> None:
    assert explained(["a.0", "b.0", "b.1"], [], 999, 999)
    assert explained([], [], 0, 0)
    assert explained([], [], 5, 5)
    assert not explained(["a.0", "a.1"], [], 1, 1)
    assert not explained(["a.0"], [], 0, 0)


def test_patterns_count_once_they_are_expanded() -> None:
    names = ["layers.0", "groups.0", "groups.1", "layers.1"]
    kept = ["layers.0", "groups.*"]
    assert explained(kept, ["layers.1"], 1, 2, dense(*names))
    assert not explained(kept, ["layers.1"], 2, 2, dense(*names))
    assert explained(kept, ["layers.1"], 7, 7)  # not known without an index


def test_plain_names_count_whether_they_are_stored_or_not() -> None:
    assert explained(KEPT, QUANTIZED, 2, 4, dense("layers.0"))


def fits(number: int, kept: int, *, quantized: bool) -> bool:
    """What a part is, as the definition has it."""
    return kept == number or (kept < number and not quantized)


@given(
    families=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=5),
    one=st.integers(0, 12),
    two=st.integers(0, 12),
)
def test_counts_are_explained_just_where_some_split_does(
    families: list[tuple[int, bool]], one: int, two: int
) -> None:
    kept = [f"f{f}.{n}" for f, (count, _) in enumerate(families) for n in range(count)]
    quantized = [f"f{f}.q" for f, (_, packed) in enumerate(families) if packed]
    expected = False
    for sides in product((0, 1), repeat=len(families)):
        counts: Counter[int] = Counter()
        packed = [False, False]
        for side, (count, is_packed) in zip(sides, families, strict=True):
            counts[side] += count
            packed[side] |= is_packed
        expected |= fits(one, counts[0], quantized=packed[0]) and fits(
            two, counts[1], quantized=packed[1]
        )
    assert explained(kept, quantized, one, two) == expected


def test_many_families_stay_cheap() -> None:
    kept = [f"f{number}.w" for number in range(10_000)]
    assert explained(kept, ["x.w"], 5_000, 5_000)
    assert not explained(kept, ["f0.q"], 0, 20_000)
