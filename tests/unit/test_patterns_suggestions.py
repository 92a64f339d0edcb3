"""What a dead entry may have meant."""

from __future__ import annotations

import pytest

from qmanifest.patterns import (
    Change,
    Pattern,
    Suggester,
    Syntax,
    near,
    nearest,
    read_entry,
    spelling,
)

NAMES = [
    f"language_model.model.layers.{layer}.{module}.weight"
    for layer in range(12)
    for module in (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    )
] + [
    "language_model.model.embed_tokens.weight",
    "language_model.lm_head.weight",
    "language_model.model.norm.weight",
    "visual.patch_embed.proj.bias",
]
MODEL = "language_model.model.layers.0.mlp.up_proj.weight"


@pytest.mark.parametrize(
    ("text", "kind", "old", "new"),
    [
        ("model.layers.3.mlp.up_proj.weight", "prefix", "", "language_model."),
        ("module." + MODEL, "prefix", "module.", ""),
        (
            "model.language_model.layers.0.mlp.up_proj.weight",
            "prefix",
            "model.language_model.",
            "language_model.model.",
        ),
        ("lm_head.weight", "prefix", "", "language_model."),
        ("model.layers.*.mlp.up_proj.weight", "prefix", "", "language_model."),
        ("model.layers.{2..5}.self_attn.*", "prefix", "", "language_model."),
        ("module.language_model.*", "prefix", "module.", ""),
        (
            "model.language_model.layers.[0-3].mlp.*",
            "prefix",
            "model.language_model.",
            "language_model.model.",
        ),
        ("layers.?.mlp.up_proj.weight", "prefix", "", "language_model.model."),
        (MODEL.removesuffix(".weight"), "suffix", "", ".weight"),
        (MODEL.replace(".weight", ".qweight"), "suffix", ".qweight", ".weight"),
        (MODEL + ".data", "suffix", ".data", ""),
        ("*.up_proj", "suffix", "", ".weight"),
        ("*.layers.*.{up,down}_proj.qweight", "suffix", ".qweight", ".weight"),
        ("*.embed_tokens.weight.data", "suffix", ".data", ""),
    ],
)
def test_near(text: str, kind: str, old: str, new: str) -> None:
    change = near(read_entry(text), NAMES)
    assert change is not None
    assert (change.kind, change.old, change.new) == (kind, old, new)
    assert change.example in NAMES


@pytest.mark.parametrize(
    "text",
    [
        MODEL.replace(".0.", ".99."),  # another layer is no change of naming
        MODEL.replace("up_proj", "gate_proj"),
        "weight",
        "other.weight",
        "foo.*.weight",
        "language_model.*.nothing",
        "zzz",
        "",
        "*",
        "re:model\\.layers.*",
        MODEL,
        "{0..99999}.*",
        "[",
    ],
)
def test_nothing_near(text: str) -> None:
    assert near(read_entry(text), NAMES) is None


def test_only_names_and_globs_have_a_change() -> None:
    for syntax in (Syntax.SUBSTRING, Syntax.PREFIX, Syntax.REGEX):
        assert near(Pattern("lm_head.weight", syntax), NAMES) is None


def test_roberta_prefix() -> None:
    names = [f"roberta.encoder.layer.{n}.output.dense.weight" for n in range(24)]
    entry = "encoder.layer.7.output.dense.weight"
    assert near(read_entry(entry), names) == Change("prefix", "", "roberta.", names[7])
    bare = [name.removeprefix("roberta.") for name in names]
    change = near(read_entry(names[7]), bare)
    assert change == Change("prefix", "roberta.", "", bare[7])


def test_a_change_is_applied_where_it_belongs() -> None:
    prefix = Change("prefix", "a.", "b.", "b.a.a.x")
    assert prefix.applied_to("a.a.a.x") == "b.a.a.x"
    suffix = Change("suffix", ".x", "", "a.x")
    assert suffix.applied_to("a.x.x") == "a.x"


def test_a_prefix_with_metacharacters_is_not_offered_to_a_glob() -> None:
    names = ["bl[ck.layers.0.weight", "b{0,1}.layers.1.weight"]
    change = near(read_entry("layers.*.weight"), names)
    assert change == Change("prefix", "", "bl[ck.", names[0])
    assert near(read_entry("layers.*.weight"), names[1:]) is None


def test_a_hundred_thousand_dead_entries_are_answered() -> None:
    names = [f"model.layers.{n}.mlp.weight" for n in range(100_000)]
    suggester = Suggester(names)
    changes = [suggester.near(read_entry(f"module.{name}")) for name in names]
    assert changes == [Change("prefix", "module.", "", name) for name in names]


def test_dead_globs_without_end_stay_cheap() -> None:
    suggester = Suggester(NAMES)
    glob = read_entry("model.layers.*.mlp.up_proj.weight")
    answers = [suggester.near(glob) for _ in range(300)]
    assert answers == [answers[0]] * 300
    assert answers[0] == Change("prefix", "", "language_model.", MODEL)
    down = suggester.near(read_entry("model.layers.7.*.{down_proj,x}.weight"))
    assert down is not None
    assert down.example == "language_model.model.layers.7.mlp.down_proj.weight"
    assert suggester.near(read_entry("module.language_model.*")) is None
    assert suggester.near(read_entry("*")) is None
    assert suggester.near(read_entry("{0..99999}")) is None


def test_dead_globs_that_are_all_like_nothing_stay_cheap() -> None:
    suggester = Suggester(NAMES)
    assert not any(suggester.near(read_entry(f"x{n}.*")) for n in range(300))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("lm_haed.weight", "language_model.lm_head.weight"),
        ("visual.patch_embd.proj.bais", "visual.patch_embed.proj.bias"),
        (MODEL.replace("up_proj", "upproj"), MODEL),
        (MODEL.upper(), None),
        ("zzzz", None),
        ("", None),
        ("w" * 5_000, None),
    ],
)
def test_nearest_name(text: str, name: str | None) -> None:
    assert nearest(text, NAMES) == name


def test_nearest_key() -> None:
    keys = ("bits", "group_size", "mode", "kept_16bit", "tensors", "scan")
    assert nearest("groupsize", keys) == "group_size"
    assert nearest("tensor", keys) == "tensors"
    assert nearest("anything", keys) is None
    assert nearest("bits", ()) is None


def test_nearest_among_many_names() -> None:
    names = [f"model.layers.{n // 9}.experts.{n % 9}.weight" for n in range(50_000)]
    suggester = Suggester(names)
    assert suggester.nearest("model.layers.77.expert.3.weigth") == (
        "model.layers.77.experts.3.weight"
    )
    assert suggester.nearest("model.layer.77.experts.3.") in names
    assert suggester.nearest("nothing.like.it") is None


def test_nearest_gives_up_before_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "_MAX_WORK", 100_000)
    names = [f"{number:b}.weight" for number in range(2_000)]
    suggester = Suggester(names)
    answers = [suggester.nearest(f"{name}0x.wait") for name in names]
    assert answers[100] is not None
    assert answers[-1] is None
