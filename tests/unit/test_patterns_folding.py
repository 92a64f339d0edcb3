"""Sets of names written as few patterns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from qmanifest.errors import PatternError
from qmanifest.patterns import fold, match, read_entry

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


def expanded(texts: tuple[str, ...], universe: set[str]) -> set[str]:
    matches = match([read_entry(text) for text in texts], sorted(universe))
    assert matches.dead == ()
    return {name for number in range(len(texts)) for name in matches.of(number)}


def encoder(prefix: str = "") -> tuple[set[str], set[str]]:
    """List the matrices of 24 encoder layers, and all else of the model."""
    stems = [f"{prefix}encoder.layer.{layer}" for layer in range(24)]
    matrices = {f"{stem}.{part}.weight" for stem in stems for part in MATRICES}
    other = {f"{stem}.{part}.bias" for stem in stems for part in MATRICES + NORMS}
    other |= {f"{stem}.{part}.weight" for stem in stems for part in NORMS}
    other |= {f"{prefix}embeddings.{x}.weight" for x in ("word", "LayerNorm")}
    return matrices, other | {f"{prefix}pooler.dense.weight", "classifier.dense.weight"}


@pytest.mark.parametrize("prefix", ["", "roberta."])
def test_the_matrices_of_an_encoder(prefix: str) -> None:
    matrices, other = encoder(prefix)
    assert fold(matrices, matrices | other) == (
        f"{prefix}encoder.layer.*.attention.self.*.weight",
        f"{prefix}encoder.layer.*.dense.weight",
    )


def test_some_layers_kept_out() -> None:
    names = {f"layers.{n}.{x}.weight" for n in range(28) for x in ("up", "down", "o")}
    kept = {"layers.3.down.weight", "layers.27.down.weight"}
    assert fold(kept, names) == ("layers.{3,27}.down.weight",)
    assert fold(names - kept, names) == (
        "layers.*.{o,up}.weight",
        "layers.{0..2,4..26}.down.weight",
    )


@pytest.mark.parametrize(
    ("selected", "others", "texts"),
    [
        ([], ["a"], ()),
        (["a"], [], ("a",)),
        (["a"], ["b"], ("a",)),
        (["a", "b"], [], ("*",)),
        (["h.0", "h.1", "h.2"], ["h.3"], ("h.{0..2}",)),
        (["h.00", "h.01", "h.02"], ["h.03", "h.0"], ("h.{00..02}",)),
        (["h.08", "h.09", "h.10"], ["h.8"], ("h.{08..10}",)),
        (["h.1", "h.01", "h.2"], ["h.02", "h.11"], ("h.{01,1,2}",)),
        (["h.0", "h.1"], ["h.3"], ("h.{0,1}",)),
        (["h.0", "h.1"], ["h.*"], ("h.{0,1}",)),
        (["w1.x", "w2.x", "w3.x"], ["w4.x"], ("w{1..3}.x",)),
        (["e_1.x", "e_2.x"], ["f.x"], ("e_*.x",)),
        (["a.x", "b.x"], ["c.x"], ("{a,b}.x",)),
        (["a..x", "a.b.x"], ["a.c.x"], ("a.{,b}.x",)),
        (["m.a.b.w", "m.c.w"], ["m.v", "x.w"], ("m.*.w",)),
        (["a.w", "a.b.w"], ["b.w"], ("a.*",)),
        (["a.1", "b.2"], ["a.2", "b.1"], ("a.1", "b.2")),
        (["a.1", "b.2"], ["c.1", "c.2"], ("{a,b}.*",)),
        (["²", "³"], ["x"], ("{²,³}",)),
    ],
)
def test_forms(selected: list[str], others: list[str], texts: tuple[str, ...]) -> None:
    assert fold(selected, selected + others) == texts


def test_names_count_as_part_of_the_universe() -> None:
    assert fold(["a.1", "a.2"], ["b"]) == ("a.*",)


@pytest.mark.parametrize("name", ["a[0]", "a{0,1}", "a*", "a?", "a,b", "a}", "a]"])
def test_a_name_with_metacharacters_stands_for_itself(name: str) -> None:
    assert fold([name, "x.y"], [name, "x.y", "zz"]) == tuple(sorted([name, "x.y"]))


@pytest.mark.parametrize(
    ("name", "other", "text"),
    [
        ("a[0]", "a0", "re:a\\[0\\]"),
        ("a{0,1}", "a1", "re:a\\{0\\,1\\}"),
        ("re:a", "a", "re:re\\:a"),
        ("{0..99999}", "a", "re:\\{0\\.\\.99999\\}"),
        ("", "a", "re:()"),
    ],
)
def test_a_name_that_means_others_is_escaped(name: str, other: str, text: str) -> None:
    assert fold([name], [name, other]) == (text,)
    assert expanded((text,), {name, other}) == {name}


def test_a_text_that_would_be_too_long_is_split() -> None:
    selected = {f"block.{n * n:06d}.weight" for n in range(500)}
    universe = selected | {f"block.{n * n + 2:06d}.weight" for n in range(500)}
    texts = fold(selected, universe)
    assert 4 <= len(texts) <= 8
    assert expanded(texts, universe) == selected


def test_a_range_that_would_be_too_long_is_split() -> None:
    selected = {f"h.{n}" for n in range(12_000)}
    assert len(fold(selected, selected | {"h.x"})) == 2


def test_a_name_that_no_pattern_matches_is_refused() -> None:
    with pytest.raises(PatternError, match="no pattern stands for"):
        fold(["a" * 1_025], ["b"])


def test_many_irregular_names_are_written_one_way_only() -> None:
    universe = {f"l.{n // 40}.e.{n % 40}.w" for n in range(1_200)}
    selected = {name for name in universe if hash_of(name) % 3 == 0}
    texts = fold(selected, universe)
    assert expanded(texts, universe) == selected
    assert len(texts) < len(selected) / 4
    assert texts == fold(sorted(selected, reverse=True), list(universe)[::-1])


def hash_of(name: str) -> int:
    """Hash a name the same way in every run."""
    return sum((at + 7) ** 3 * ord(letter) for at, letter in enumerate(name)) % 10_007


def seed(name: str) -> dict[str, Any]:
    path = SEEDS / name
    if not path.exists():
        pytest.skip("the founding configs are not at hand")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_the_lists_of_the_tensor_map_seed() -> None:
    document = seed("tensor_map.quant_config.json")
    kept, tensors = set(document["kept_16bit"]), set(document["tensors"])
    assert (len(kept), len(tensors)) == (210, 112)
    for selected in (kept, tensors):
        texts = fold(selected, kept | tensors)
        assert len(texts) == 3
        assert expanded(texts, kept | tensors) == selected


@pytest.mark.parametrize(("key", "prefix"), [("emb_q4", ""), ("rr_q4", "roberta.")])
def test_the_lists_of_the_q4_seed(key: str, prefix: str) -> None:
    names = set(seed("q4_lists.quant_config.json")[key])
    matrices, other = encoder(prefix)
    assert names == matrices
    texts = fold(names, names | other)
    assert len(texts) == 2
    assert expanded(texts, names | other) == names
    assert all(re.fullmatch(r"[\w.*]+", text) for text in texts)


def test_pattern_that_is_a_name_left_out_is_not_written() -> None:
    """A glob also matches the name that is its own text."""
    assert fold(["a", "b"], ["a", "b", "{a,b}"]) == ("a", "b")
