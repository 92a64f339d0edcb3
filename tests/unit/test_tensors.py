"""Tensors as found and as promised, and the index of those found."""

from __future__ import annotations

import pytest

from qmanifest.tensors import TensorIndex, TensorInfo, TensorSpec


def info(name: str, file: str = "m.safetensors") -> TensorInfo:
    return TensorInfo(name, "F16", (4, 8), 100, 164, file)


def test_info() -> None:
    assert info("a").nbytes == 64
    assert str(info("a")) == "F16 [4, 8]"
    assert str(TensorInfo("a", "F32", (), 0, 4, "m")) == "F32 []"


def test_spec_is_sized_by_the_first_dtype() -> None:
    assert TensorSpec("a", "scales", ("F16", "F32"), (4, 8), "").nbytes == 64
    assert TensorSpec("a", "scales", ("F32", "F16"), (4, 8), "").nbytes == 128
    assert TensorSpec("a", "scales", ("F16",), None, "").nbytes is None


def test_index_is_a_mapping_in_order() -> None:
    index = TensorIndex([info("b"), info("a")])
    assert list(index) == ["b", "a"]
    assert len(index) == 2
    assert index["a"] == info("a")
    assert "a" in index
    assert "c" not in index
    anything: object = 7
    assert anything not in index
    assert index.get("c") is None
    assert index.repeats == ()
    with pytest.raises(KeyError):
        index["c"]


def test_the_first_of_a_name_is_found_and_the_others_are_kept() -> None:
    first, second, third = (info("a", file) for file in ("1", "2", "3"))
    index = TensorIndex([first, info("b"), second, third])
    assert index["a"] is first
    assert index.repeats == (second, third)
    assert len(index) == 2


def test_an_index_of_nothing() -> None:
    assert (len(TensorIndex()), list(TensorIndex())) == (0, [])


def test_by_name_is_the_same_and_read_only() -> None:
    index = TensorIndex([info("a"), info("b"), info("a", "n.safetensors")])
    assert dict(index.by_name) == dict(index)
    assert index.by_name["a"].file == "m.safetensors"
    with pytest.raises(TypeError):
        index.by_name["c"] = info("c")  # type: ignore[index] # that is what is tested
