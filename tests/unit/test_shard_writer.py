"""Shards: how they are planned, and what is written."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from qmanifest.errors import WriteError
from qmanifest.writing import header
from qmanifest.writing.index import (
    index_document,
    remove_stale,
    write_index,
    written_files,
)
from qmanifest.writing.shards import (
    SHARD_SIZE,
    OutputTensor,
    ShardPlan,
    plan_shards,
    planned_header_bytes,
    shard_names,
    write_shard,
    write_shards,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MLX = {"format": "mlx"}
TWO = (OutputTensor("a", "U32", (2, 4)), OutputTensor("b", "F16", (2, 8)))


def zeros(spec: OutputTensor) -> list[bytes]:
    return [bytes(spec.nbytes)]


def parse(path: Path) -> tuple[dict[str, object], bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def test_one_shard_has_no_number() -> None:
    (plan,) = plan_shards(TWO)
    assert plan == ShardPlan("model.safetensors", TWO)
    assert plan.nbytes == 64


def test_greedy_in_order_at_the_exact_limit() -> None:
    specs = [
        OutputTensor(name, "U8", (size,))
        for name, size in zip("abcd", (8, 8, 16, 8), strict=True)
    ]
    plans = plan_shards(specs, shard_size=16, stem="emb")
    assert [[spec.name for spec in plan.tensors] for plan in plans] == [
        ["a", "b"],
        ["c"],
        ["d"],
    ]
    assert [plan.file for plan in plans] == [
        f"emb-0000{number}-of-00003.safetensors" for number in (1, 2, 3)
    ]


def test_larger_tensor_is_alone() -> None:
    specs = [
        OutputTensor(name, "U8", (size,))
        for name, size in zip("abc", (8, 99, 8), strict=True)
    ]
    plans = plan_shards(specs, shard_size=16)
    assert [len(plan.tensors) for plan in plans] == [1, 1, 1]


def test_first_tensor_larger_makes_no_empty_shard() -> None:
    plans = plan_shards([OutputTensor("a", "U8", (99,))], shard_size=1)
    assert [len(plan.tensors) for plan in plans] == [1]


def test_model_without_tensors_has_one_empty_shard(tmp_path: Path) -> None:
    (plan,) = plan_shards([])
    write_shard(tmp_path, plan, zeros, {})
    assert parse(tmp_path / "model.safetensors") == ({}, b"")


def test_only_ragged_tensors_move_and_all_are_aligned() -> None:
    specs = [
        OutputTensor("byte", "U8", (3,)),
        OutputTensor("half", "F16", (5,)),
        OutputTensor("first", "U8", (8,)),
        OutputTensor("word", "U32", (1,)),
        OutputTensor("second", "F64", (1,)),
    ]
    (plan,) = plan_shards(specs)
    names = [spec.name for spec in plan.tensors]
    assert names == ["first", "second", "word", "half", "byte"]


def test_default_limit_is_five_gigabytes() -> None:
    assert SHARD_SIZE == 5 * 10**9


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (OutputTensor("__metadata__", "U8", (1,)), "is taken"),
        (OutputTensor("a", "Q4", (1,)), "unknown dtype 'Q4'"),
        (OutputTensor("a", "U8", (-1,)), "whole number of bytes"),
        (OutputTensor("a", "F4", (3,)), "whole number of bytes"),
        (OutputTensor("a", "F6_E2M3", (2,)), "whole number of bytes"),
    ],
)
def test_tensor_that_no_header_can_say(spec: OutputTensor, message: str) -> None:
    with pytest.raises(WriteError, match=message):
        plan_shards([spec])


def test_repeated_name() -> None:
    with pytest.raises(WriteError, match="'a' is taken"):
        plan_shards([TWO[0], TWO[0]])


def test_shard_size_of_nothing() -> None:
    with pytest.raises(WriteError, match="shard size 0"):
        plan_shards(TWO, shard_size=0)


@pytest.mark.parametrize(
    "stem", ["", ".", "..", "a/b", "a\\b", "c:d", "\0", "\u202e", "\ud800"]
)
def test_stem_that_leaves_the_folder(stem: str) -> None:
    with pytest.raises(WriteError, match="no plain file name"):
        plan_shards(TWO, stem=stem)


def test_many_shards_grow_the_number() -> None:
    assert shard_names(100_000)[-1] == "model-100000-of-100000.safetensors"


def test_header_is_compact_in_order_and_padded(tmp_path: Path) -> None:
    (plan,) = plan_shards(TWO)
    write_shard(tmp_path, plan, zeros, MLX)
    content = (tmp_path / plan.file).read_bytes()
    text = content[8 : planned_header_bytes(TWO, MLX)]
    assert text.rstrip(b" ") == (
        b'{"__metadata__":{"format":"mlx"},'
        b'"a":{"dtype":"U32","shape":[2,4],"data_offsets":[0,32]},'
        b'"b":{"dtype":"F16","shape":[2,8],"data_offsets":[32,64]}}'
    )
    assert len(text) % 8 == 0
    assert len(content) == planned_header_bytes(TWO, MLX) + 64


def test_header_over_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = planned_header_bytes(TWO, MLX) - 8
    monkeypatch.setattr(header, "HEADER_LIMIT", exact)
    assert planned_header_bytes(TWO, MLX) == exact + 8
    monkeypatch.setattr(header, "HEADER_LIMIT", exact - 1)
    with pytest.raises(WriteError, match="Lower the shard size"):
        planned_header_bytes(TWO, MLX)


def test_half_a_surrogate_pair_in_a_name() -> None:
    with pytest.raises(WriteError, match="surrogate pair"):
        planned_header_bytes([OutputTensor("\udc80", "U8", (1,))], {})


def test_data_comes_in_any_buffers(tmp_path: Path) -> None:
    def data(_: OutputTensor) -> Iterator[bytes | bytearray | memoryview]:
        yield b""
        yield bytes(range(30))
        yield bytearray(b"\xff")
        yield memoryview(b"\x01")

    (plan,) = plan_shards(TWO)
    write_shard(tmp_path, plan, data, MLX)
    _, body = parse(tmp_path / plan.file)
    assert body == (bytes(range(30)) + b"\xff\x01") * 2


@pytest.mark.parametrize(
    ("size", "found"), [(31, "only 31"), (33, "more than 32"), (0, "only 0")]
)
def test_data_of_another_size(tmp_path: Path, size: int, found: str) -> None:
    (plan,) = plan_shards(TWO[:1])
    (tmp_path / plan.file).write_bytes(b"old")
    message = rf"'a' yields {found} bytes; U32 \[2, 4\] takes exactly 32"
    with pytest.raises(WriteError, match=message):
        write_shard(tmp_path, plan, lambda _: [bytes(size)], MLX)
    assert (tmp_path / plan.file).read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_endless_data_is_stopped_at_the_planned_size(tmp_path: Path) -> None:
    asked = 0

    def data(_: OutputTensor) -> Iterator[bytes]:
        nonlocal asked
        while True:
            asked += 1
            yield bytes(16)

    (plan,) = plan_shards(TWO)
    with pytest.raises(WriteError, match="more than 32"):
        write_shard(tmp_path, plan, data, MLX)
    assert asked == 3


def test_data_with_gaps(tmp_path: Path) -> None:
    (plan,) = plan_shards(TWO)
    with pytest.raises(WriteError, match="has gaps"):
        write_shard(tmp_path, plan, lambda _: [memoryview(bytes(64))[::2]], MLX)


def test_progress_counts_over_all_shards(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    plans = plan_shards(TWO, shard_size=32)
    write_shards(
        tmp_path,
        plans,
        lambda spec: [bytes(spec.nbytes // 2)] * 2,
        MLX,
        lambda done, total, name: told.append((done, total, name)),
    )
    assert told == [(16, 64, "a"), (32, 64, "a"), (48, 64, "b"), (64, 64, "b")]


def test_shards_without_progress(tmp_path: Path) -> None:
    plans = plan_shards(TWO, shard_size=32)
    write_shards(tmp_path, plans, zeros, MLX)
    assert {path.name for path in tmp_path.iterdir()} == {plan.file for plan in plans}


def test_index_is_sorted_and_counts_tensor_bytes(tmp_path: Path) -> None:
    plans = plan_shards([TWO[1], TWO[0]], shard_size=32)
    document = index_document(plans, 64)
    assert document == {
        "metadata": {"total_size": 64, "total_parameters": 64},
        "weight_map": {
            "a": "model-00002-of-00002.safetensors",
            "b": "model-00001-of-00002.safetensors",
        },
    }
    weight_map = document["weight_map"]
    assert isinstance(weight_map, dict)
    assert list(weight_map) == ["a", "b"]
    name = write_index(tmp_path, plans, 64)
    assert name == "model.safetensors.index.json"
    assert json.loads((tmp_path / name).read_bytes()) == document


def test_single_shard_has_no_index(tmp_path: Path) -> None:
    assert write_index(tmp_path, plan_shards(TWO), 64) is None
    assert list(tmp_path.iterdir()) == []


def test_stale_files_go_and_all_others_stay(tmp_path: Path) -> None:
    plans = plan_shards(TWO, shard_size=32)
    stale = [
        ".model-00001-of-00003.safetensors.0123abcd.tmp",
        ".model.safetensors.index.json.0123abcd.tmp",
        "model-00001-of-00003.safetensors",
        "model.safetensors",
    ]
    others = ["emb.safetensors", "model.safetensors.txt", "xmodel.safetensors", "a.tmp"]
    for name in (*stale, *others, *written_files(plans)):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "model-00009-of-00009.safetensors").mkdir()
    assert remove_stale(tmp_path, "model", written_files(plans)) == tuple(stale)
    assert {path.name for path in tmp_path.iterdir()} == {
        *others,
        *written_files(plans),
        "model-00009-of-00009.safetensors",
    }


def test_index_of_an_earlier_write_is_stale_beside_one_shard(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(b"{}")
    removed = remove_stale(tmp_path, "model", written_files(plan_shards(TWO)))
    assert removed == ("model.safetensors.index.json",)


def test_stem_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "axb.safetensors").write_bytes(b"")
    assert remove_stale(tmp_path, "a.b", set()) == ()


def test_stale_link_goes_and_its_file_stays(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"x")
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "blob")
    remove_stale(tmp_path, "model", set())
    assert [path.name for path in tmp_path.iterdir()] == ["blob"]


def test_stale_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="by hand"):
        remove_stale(tmp_path / "none", "model", set())


KILLED = """
import os, sys
from pathlib import Path
from qmanifest.writing.shards import OutputTensor, plan_shards, write_shards

def data(spec):
    yield b"N" * (1 << 20)
    if spec.name == "c":
        os._exit(9)
    yield b"N" * (1 << 20)

specs = [OutputTensor(name, "U8", (2 << 20,)) for name in "abcd"]
write_shards(Path(sys.argv[1]), plan_shards(specs, 4 << 20), data, {"format": "mlx"})
"""


@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "over an old file"])
def test_killed_writer_leaves_no_half_file(tmp_path: Path, *, fresh: bool) -> None:
    first, second = shard_names(2)
    if not fresh:
        (tmp_path / second).write_bytes(b"old")
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, os.fspath(tmp_path)], check=False, timeout=60
    )
    assert ran.returncode == 9
    described, body = parse(tmp_path / first)
    assert set(described) == {"__metadata__", "a", "b"}
    assert body == b"N" * (4 << 20)
    finals = {path.name for path in tmp_path.iterdir() if path.suffix != ".tmp"}
    assert finals == ({first} if fresh else {first, second})
    if not fresh:
        assert (tmp_path / second).read_bytes() == b"old"
    remove_stale(tmp_path, "model", finals)
    assert {path.name for path in tmp_path.iterdir()} == finals
