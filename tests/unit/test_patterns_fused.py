"""Fused modules and their shards stand for each other, and shards have to agree."""

from __future__ import annotations

import pytest

from qmanifest.patterns import FUSED, Pattern, Split, Syntax, expand
from qmanifest.patterns.fused import fused_name, shard_names, unstored

APART = ("a.q_proj", "a.k_proj", "a.v_proj", "a.o_proj")
WHOLE = ("a.qkv_proj", "a.o_proj")


def exact(*texts: str) -> list[Pattern]:
    return [Pattern(text, Syntax.EXACT) for text in texts]


def test_names_of_fused_modules_and_shards() -> None:
    assert fused_name("a.0.up_proj") == "a.0.gate_up_proj"
    assert fused_name("up_proj") == "gate_up_proj"
    assert fused_name("a.down_proj") is None
    assert shard_names("a.w13") == ("a.w1", "a.w3")
    assert shard_names("a.w1") == ()


def test_no_shard_is_of_two_fused_modules() -> None:
    shards = [shard for each in FUSED.values() for shard in each]
    assert len(shards) == len(set(shards))


def test_a_fused_name_means_its_shards() -> None:
    found = expand(exact("a.qkv_proj", "a.o_proj"), APART)
    assert found.found == (APART[:3], APART[3:])
    assert found.splits == ()


def test_not_to_readers_that_ask_for_shards_alone() -> None:
    found = expand(exact("a.qkv_proj"), APART, by_fused=False)
    assert found.found == ((),)


def test_shards_have_to_agree() -> None:
    found = expand(exact("a.k_proj", "a.q_proj"), APART)
    assert found.found == (("a.k_proj",), ("a.q_proj",))
    assert found.splits == (
        Split("a.qkv_proj", ("a.q_proj", "a.k_proj"), ("a.v_proj",)),
    )
    assert expand(exact(*APART[:3]), APART).splits == ()


def test_all_shards_mean_a_module_that_is_stored_whole() -> None:
    found = expand(exact("a.q_proj", "a.k_proj", "a.v_proj"), WHOLE)
    assert found.found == (("a.qkv_proj",),) * 3
    assert found.splits == ()
    (split,) = expand(exact("a.q_proj"), WHOLE).splits
    assert split.unmatched == ("a.k_proj", "a.v_proj")


@pytest.mark.parametrize("modules", [APART, WHOLE])
def test_patterns_of_many_names_agree_by_themselves(modules: tuple[str, ...]) -> None:
    found = expand([Pattern("a.", Syntax.PREFIX)], modules)
    assert found.found == (modules,)
    assert found.splits == ()


def test_unstored_names() -> None:
    assert unstored(["w1", "w3", "w2"]) == {"w13": ("w1", "w3")}
    assert unstored(["w13"]) == {"w1": ("w13",), "w3": ("w13",)}
    assert unstored(["w1", "w13"]) == {"w3": ("w13",)}
