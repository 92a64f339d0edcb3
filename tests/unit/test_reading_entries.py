"""Broken tensor entries are named with what was found, many of them in short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from qmanifest.findings import Defect, DefectKind, Severity
from qmanifest.reading import limits
from qmanifest.reading.capped import REPORTED
from qmanifest.reading.header_entries import Entries, read_entries

if TYPE_CHECKING:
    from qmanifest.findings import JsonValue


def entry(dtype: object = "F16", shape: object = (2,), offsets: object = (0, 4)) -> Any:  # noqa: ANN401 - an entry as JSON has it, or what is none
    def listed(value: object) -> object:
        return list(value) if isinstance(value, tuple) else value

    return {"dtype": dtype, "shape": listed(shape), "data_offsets": listed(offsets)}


def read(**members: Any) -> Entries:  # noqa: ANN401 - as above
    return read_entries(members, "f", 100)


def only(entries: Entries) -> Defect:
    (defect,) = entries.defects
    return defect


def without(field: str) -> Any:  # noqa: ANN401 - as above
    return {key: value for key, value in entry().items() if key != field}


def test_offsets_become_absolute() -> None:
    (tensor,) = read(x=entry()).tensors
    assert (tensor.begin, tensor.end, tensor.file) == (100, 104, "f")


@pytest.mark.parametrize(
    ("broken", "message", "field"),
    [
        ("F16", 'its entry is "F16", not an object', None),
        (None, "its entry is null", None),
        ([1], "its entry is [1]", None),
        ({}, "no dtype and no shape and no data_offsets", None),
        (without("shape"), "its entry has no shape", None),
        (without("dtype"), "no dtype", None),
        (without("data_offsets"), "no data_offsets", None),
        (entry(None), "its dtype is null, not a string", "dtype"),
        (entry(["F16"]), 'its dtype is ["F16"], not a string', "dtype"),
        (entry("F12"), "its dtype 'F12' does not exist", "dtype"),
        (entry(shape=None), "its shape is null, not an array", "shape"),
        (entry(shape="2"), 'its shape is "2", not an array', "shape"),
        (entry(shape=(2.0,)), "2.0 at position 0", "shape"),
        (entry(shape=(1, "2")), '"2" at position 1', "shape"),
        (entry(shape=(True, 2)), "true at position 0", "shape"),
        (entry(shape=([2],)), "[2] at position 0", "shape"),
        (entry(shape=(-2, -1)), "-2 at position 0", "shape"),
        (entry(shape=(2**32, 2**32)), "overflows 64 bits", "shape"),
        (entry(shape=(0, 2**62, 2**62), offsets=(0, 0)), "overflows", "shape"),
        (entry(shape=(2**62, 2**62, 0), offsets=(0, 0)), "overflows", "shape"),
        (entry(shape=(10**600,)), "overflows", "shape"),
        (entry("F4", (3,), (0, 2)), "12 bits, not a whole number", "shape"),
        (entry("F6_E3M2", (2,), (0, 2)), "12 bits, not a whole", "shape"),
        (entry(offsets=None), "its data_offsets are null", "data_offsets"),
        (entry(offsets=(0,)), "[0], not [begin, end]", "data_offsets"),
        (entry(offsets=(0, 2, 4)), "[0, 2, 4]", "data_offsets"),
        (entry(offsets={"0": 4}), "an object, not [begin", "data_offsets"),
        (entry(offsets=(0.0, 4.0)), "[0.0, 4.0]; both must be", "data_offsets"),
        (entry(offsets=(False, 4)), "[false, 4]; both", "data_offsets"),
        (entry(offsets=("0", 4)), "both must be integers", "data_offsets"),
        (entry(offsets=(-4, 0)), "at least 0", "data_offsets"),
        (entry(offsets=(8, 4)), "end before they begin", "data_offsets"),
        (entry(shape=(0, 9)), "takes 0 bytes, and its data_offsets", "data_offsets"),
        (entry(offsets=(0, 5)), "4 bytes, and its data_offsets", "data_offsets"),
    ],
)
def test_broken_entry_says_what_was_found(
    broken: JsonValue, message: str, field: str | None
) -> None:
    entries = read(good=entry(), x=broken)
    defect = only(entries)
    assert defect.kind is DefectKind.BAD_ENTRY
    assert defect.problem.severity is None
    assert "tensor 'x'" in defect.problem.message
    assert message in defect.problem.message
    assert defect.problem.at[0].tensor == "x"
    assert defect.problem.at[0].pointer == (f"/x/{field}" if field else "/x")
    assert defect.problem.hint
    assert not entries.whole
    assert [tensor.name for tensor in entries.tensors] == ["good"]


def test_all_faults_of_an_entry_are_one_defect() -> None:
    message = only(read(x=entry("F12", None, (1,)))).problem.message
    assert "F12" in message
    assert "null" in message
    assert "[1]" in message


def test_size_mismatch_has_both_numbers() -> None:
    problem = only(read(x=entry("F32", (3, 5), (0, 59)))).problem
    assert (problem.expected, problem.actual) == (60, 59)
    assert "F32 [3, 5] takes 60 bytes" in problem.message
    assert "[0, 59] span 59 bytes" in problem.message


@pytest.mark.parametrize(
    ("dtype", "meant"),
    [("f16", "F16"), ("float16", "F16"), ("bfloat16", "BF16"), ("FP16", "F16")],
)
def test_dtype_of_another_spelling_has_a_suggestion(dtype: str, meant: str) -> None:
    assert only(read(x=entry(dtype))).problem.hint == f"write {meant!r}"


def test_dtype_without_a_neighbour_lists_all() -> None:
    assert "BF16, I32" in (only(read(x=entry("Q4_K"))).problem.hint or "")


def test_huge_shapes_are_refused_quickly_and_shown_short() -> None:
    for rank in (limits.MAX_RANK, 200_000):
        problem = only(read(x=entry(shape=(2**40,) * rank))).problem
        assert len(problem.message) < 400


@pytest.mark.parametrize(("extra", "accepted"), [(-1, True), (0, True), (1, False)])
def test_rank_limit(extra: int, *, accepted: bool) -> None:
    rank = limits.MAX_RANK + extra
    entries = read(x=entry(shape=(2,) + (1,) * (rank - 1)))
    assert entries.whole is accepted
    if not accepted:
        assert "257 dimensions; at most 256" in only(entries).problem.message


def test_unknown_fields_are_a_warning() -> None:
    entries = read(x={**entry(), "strides": [1], "order": "C"})
    problem = only(entries).problem
    assert problem.severity is Severity.WARNING
    assert "'strides', 'order'" in problem.message
    assert problem.at[0].pointer == "/x/strides"
    assert entries.whole
    assert len(entries.tensors) == 1


def test_many_broken_entries_are_counted() -> None:
    entries = read(**{f"x{n}": None for n in range(REPORTED + 1_000)})
    assert len(entries.defects) == REPORTED + 1
    assert "1,000 more" in entries.defects[-1].problem.message
    assert {defect.kind for defect in entries.defects} == {DefectKind.BAD_ENTRY}
    assert len(read(**{f"x{n}": None for n in range(REPORTED)}).defects) == REPORTED


@pytest.mark.parametrize("char", ["n", "ä", "\U0001f600"])
@pytest.mark.parametrize(("extra", "accepted"), [(-1, True), (0, True), (1, False)])
def test_name_limit_counts_utf8_bytes(char: str, extra: int, *, accepted: bool) -> None:
    size = limits.MAX_NAME + extra
    width = len(char.encode())
    name = char * (size // width) + "x" * (size % width)
    entries = read(**{name: entry()})
    assert entries.whole is accepted
    if not accepted:
        problem = only(entries).problem
        assert "1,025 bytes" in problem.message
        assert len(problem.message) < 300
    else:
        assert entries.defects == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "empty name"),
        ("a\x1b[2J", "U+001B ESCAPE"),
        ("a\nb", "U+000A LINE FEED"),
        ("a\0", "U+0000 NULL"),
        ("a\u202eb", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("a\u200bb", "U+200B ZERO WIDTH SPACE"),
        ("a\u00a0b", "U+00A0 NO-BREAK SPACE"),
        ("a\U000e0041", "U+E0041 TAG LATIN CAPITAL LETTER A"),
    ],
)
def test_odd_names_are_a_warning(name: str, message: str) -> None:
    entries = read(**{"fine": entry(), name: entry()})
    defect = only(entries)
    assert defect.kind is DefectKind.BAD_ENTRY
    assert defect.problem.severity is Severity.WARNING
    assert message in defect.problem.message
    assert defect.problem.message.isprintable()
    assert entries.whole


@pytest.mark.parametrize("name", ["[/red]", "{0}%s", "a|`b`", "../../x", "my head/w"])
def test_names_with_markup_or_slashes_are_fine(name: str) -> None:
    assert read(**{name: entry()}).defects == ()
