"""What each reader makes of an entry, and where two of them differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmanifest.patterns import (
    FUSED,
    READ_BY,
    READERS,
    Comparison,
    Pattern,
    Reader,
    Syntax,
    check,
    disagreements,
    looks_like_class,
    match,
    read_by,
)
from qmanifest.patterns.comparing import MOST_EXAMPLES
from qmanifest.patterns.reader import simplest

ROOT = Path(__file__).parent.parent.parent
MODULES = (
    "lm_head",
    "model.embed_tokens",
    "model.layers.0.self_attn.q_proj",
    "model.layers.0.self_attn.k_proj",
    "model.layers.0.self_attn.v_proj",
    "model.layers.0.mlp.gate_proj",
    "model.layers.1.self_attn.q_proj",
    "model.layers.10.self_attn.q_proj",
    "model.layers.10.mlp.gate",
    "visual.lm_head",
)
QUERY_0, KEY_0, VALUE_0, GATE_0 = MODULES[2:6]
QUERY_1, QUERY_10, ROUTER_10 = MODULES[6:9]


@pytest.mark.parametrize(
    ("reader", "text", "found"),
    [
        ("mlx", "lm_head", ("lm_head",)),
        ("mlx", "model.layers.0", ()),
        ("transformers", "lm_head", ("lm_head", "visual.lm_head")),
        ("transformers", "model.layers.1", (QUERY_1,)),
        ("transformers", "model.layers.1.", (QUERY_1, QUERY_10, ROUTER_10)),
        ("transformers", "model.layers.*.mlp", (GATE_0, ROUTER_10)),
        ("transformers", "_proj", MODULES[2:8]),
        ("transformers", "(?<!x)lm_head", ()),
        ("transformers-embeddings", "embed_tokens", ("model.embed_tokens",)),
        ("gptq-dynamic", r"-:model\.layers\.1\.", (QUERY_1,)),
        ("gptq-dynamic", "+:.*gate", (GATE_0, ROUTER_10)),
        ("gptq-dynamic", "gate", ()),
        ("vllm-gptq", "mlp.gate", (GATE_0, ROUTER_10)),
        ("optimum", "mlp.gate", (ROUTER_10,)),
        ("autoawq", "layers.0", ()),
        ("autoawq", "self_attn.q", (QUERY_0, QUERY_1, QUERY_10)),
        ("vllm-awq", "layers.1", (QUERY_1, QUERY_10, ROUTER_10)),
        ("compressed-tensors", "re:.*lm_head", ("lm_head", "visual.lm_head")),
        ("compressed-tensors", "re:lm_head", ("lm_head",)),
        ("compressed-tensors", "re:model.*0.mlp", (GATE_0, ROUTER_10)),
        ("compressed-tensors", "model.*", ()),
        ("vllm-fp8", "model.layers.0", ()),
        ("modelopt", "model.layers.1*", (QUERY_1, QUERY_10, ROUTER_10)),
        ("modelopt", "lm_head", ("lm_head",)),
        ("modelopt", "{lm_head,x}", ()),
        ("vllm-modelopt", "lm_head", ("lm_head", "visual.lm_head")),
        ("vllm-modelopt", "visual*", ("visual.lm_head",)),
        ("vllm-bitsandbytes", "mlp", (GATE_0, ROUTER_10)),
        ("vllm-bitsandbytes", "model.layers.1", (QUERY_1,)),
        ("vllm-bitsandbytes", "layers.1", ()),
        ("torchao", "re:lm_.*", ("lm_head",)),
        ("torchao", "re:lm_", ()),
        ("hqq", "self_attn.q_proj", (QUERY_0, QUERY_1, QUERY_10)),
        ("hqq", "q_proj", ()),
        ("hqq", "visual.lm_head", ("visual.lm_head",)),
        ("autoround", "lm_head", ("lm_head",)),
        ("autoround", r"\.0\.mlp|embed", ("model.embed_tokens", GATE_0)),
        ("autoround-blocks", "model.layers.1", (QUERY_1, QUERY_10, ROUTER_10)),
        ("quark", "*_head", ("lm_head", "visual.lm_head")),
        ("gemma", r"1\.self", (QUERY_1,)),
    ],
)
def test_each_reader_matches_in_its_own_way(
    reader: str, text: str, found: tuple[str, ...]
) -> None:
    each = READERS[reader]
    patterns = each.patterns(text)
    matches = match(patterns, MODULES)
    names = {name for n in range(len(patterns)) for name in matches.of(n)}
    if each.exact_wins and text in MODULES:
        names = {text}
    assert names == set(found)


def test_all_that_read_a_list_are_known() -> None:
    named = {reader for readers in READ_BY.values() for reader in readers}
    assert named == set(READERS)
    for reader in READERS.values():
        assert reader.how
        assert reader.source


def readers(*ids: str) -> list[Reader]:
    return [READERS[each] for each in ids]


def test_readers_disagree_with_examples() -> None:
    awq = readers(*READ_BY["awq", "modules_to_not_convert"])
    names = [f"{module}.weight" for module in MODULES] + ["model.layers.1.norm.bias"]
    found, second = disagreements(["mlp", "layers.1"], awq, names, ".weight")
    assert (found.text, found.reader.id, found.other.id) == (
        *(0, "vllm-awq", "transformers"),
    )
    assert found.only_reader == (f"{GATE_0}.weight", f"{ROUTER_10}.weight")
    assert (found.only_other, found.number) == ((), 2)
    assert (second.text, second.number) == (1, 2)


def test_readers_disagree_about_a_list_and_not_each_text() -> None:
    pair = readers("vllm-awq", "transformers")
    first, second = disagreements(["mlp.gate", "layers.10"], pair, MODULES)
    assert (first.text, first.only_reader) == (0, (GATE_0,))  # both keep the router
    assert (second.text, second.only_reader) == (1, (QUERY_10,))
    covered = ["mlp.gate", "layers.10", QUERY_10, GATE_0]
    assert disagreements(covered, pair, MODULES) == ()


def test_what_only_the_other_reader_matches() -> None:
    (found,) = disagreements(["lm_head"], readers("vllm-fp8", "transformers"), MODULES)
    assert (found.only_reader, found.only_other) == ((), ("visual.lm_head",))


def test_examples_are_few_and_a_name_is_told_once() -> None:
    names = [f"model.layers.{number}.x" for number in range(50)]
    texts = ["x", ".x", "model.layers.7.x"]
    (found,) = disagreements(texts, readers("vllm-awq", "vllm-fp8"), names)
    assert len(found.only_reader) == MOST_EXAMPLES
    assert found.number == 49


def test_what_cannot_be_compared_is_left_out() -> None:
    awq = readers("vllm-awq", "transformers")
    assert disagreements(["*.mlp"], awq, MODULES) == ()
    assert disagreements(["*.mlp"], awq[::-1], MODULES) == ()
    assert disagreements(["mlp"], awq[:1], MODULES) == ()
    assert disagreements(["mlp"], [], MODULES) == ()
    assert disagreements(["visual"], readers("vllm-awq", "autoawq"), MODULES) == ()


def test_texts_that_mean_the_same_to_both_are_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    comparison = Comparison(MODULES)
    monkeypatch.delattr(Comparison, "_matched")
    pair = readers("modelopt", "quark")
    assert list(comparison.of(["lm_head", "model.*"], pair)) == []


def test_fused_names_count_for_the_readers_that_ask_for_them() -> None:
    pair = readers(*READ_BY["compressed-tensors", "ignore"])
    (found,) = disagreements(["model.layers.0.self_attn.qkv_proj"], pair, MODULES)
    assert found.only_other == (QUERY_0, KEY_0, VALUE_0)
    assert disagreements(["re:.*q_proj"], pair, MODULES) == ()


def test_a_name_wins_over_an_expression() -> None:
    names = ["a.b", "a-b", "x.a.b"]
    assert disagreements(["a.b"], readers("autoround", "vllm-fp8"), names) == ()
    (found,) = disagreements(["a.?b"], readers("autoround", "vllm-fp8"), names)
    assert found.number == 3


def test_read_by() -> None:
    assert read_by("fp8", "ignored_layers") == ("vllm-fp8", ("transformers",))
    with pytest.raises(KeyError):
        read_by("fp8", "nothing")


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        (Pattern("re:lm_head", Syntax.REGEX), Pattern("lm_head", Syntax.EXACT)),
        (Pattern("re:lm_head", Syntax.RE_MATCH), Pattern("lm_head", Syntax.PREFIX)),
        (Pattern("-:mlp", Syntax.DYNAMIC), Pattern("mlp", Syntax.PREFIX)),
        (Pattern("mlp", Syntax.RE_SEARCH), Pattern("mlp", Syntax.SUBSTRING)),
        (Pattern("a.b{1}", Syntax.FNMATCH), Pattern("a.b{1}", Syntax.EXACT)),
        (Pattern("a*", Syntax.FNMATCH), Pattern("a*", Syntax.FNMATCH)),
        (Pattern("a.b", Syntax.RE_SEARCH), Pattern("a.b", Syntax.RE_SEARCH)),
    ],
)
def test_simplest_form(pattern: Pattern, plain: Pattern) -> None:
    assert simplest([pattern]) == {plain}


def test_what_others_say_too_is_left_out() -> None:
    patterns = READERS["vllm-modelopt"].patterns("mlp")
    assert simplest(patterns) == {Pattern("mlp", Syntax.SUBSTRING)}


@pytest.mark.parametrize(
    ("text", "is_class"),
    [
        *((text, True) for text in ("Linear", "LinearBase", "FusedMoE", "MoE")),
        *((text, True) for text in ("Conv1D", "Qwen3MoeSparseMoeBlock", "LSTM")),
        *((text, False) for text in ("lm_head", "model.Linear", "re:Linear", "")),
        *((text, False) for text in ("Linear*", "W_q", "A", "linear", "0Linear")),
    ],
)
def test_looks_like_class(text: str, *, is_class: bool) -> None:
    assert looks_like_class(text) == is_class


@pytest.mark.parametrize("syntax", [Syntax.RE_MATCH, Syntax.DYNAMIC, Syntax.BOUNDARY])
def test_what_cannot_be_used_is_refused(syntax: Syntax) -> None:
    for text in ("(", "a(?=b)", "a)(b", "(?:a{1000}){1000}"):
        assert check(Pattern(text, syntax)) is not None


def test_a_mark_alone_is_empty() -> None:
    assert check(Pattern("-:", Syntax.DYNAMIC)) == "it is empty"
    assert check(Pattern("-:", Syntax.RE_SEARCH)) is None


def test_only_re2_knows_quotations() -> None:
    assert "bad escape" in (check(Pattern(r"a\Q.b", Syntax.BOUNDARY)) or "")
    assert check(Pattern(r"a\\Q.b", Syntax.BOUNDARY)) is None


def test_the_page_lists_every_reader_list_syntax_and_fused_module() -> None:
    page = (ROOT / "docs" / "how-to" / "match-names.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    for reader in READERS.values():
        how = ", ".join(f"`{syntax}`" for syntax in reader.how)
        marked = f"`{reader.marked}`" if reader.marked else ""
        start = f"| `{reader.id}` | {reader.title} | {how} | {marked} |"
        assert any(row.startswith(start) for row in rows), start
    for (dialect, key), ids in READ_BY.items():
        end = f"| {', '.join(f'`{each}`' for each in ids)} |"
        found = [row for row in rows if f"{dialect} `{key}`" in row]
        assert [row.endswith(end) for row in found] == [True]
    for name, shards in FUSED.items():
        assert f"| `{name}` | {', '.join(f'`{each}`' for each in shards)} |" in rows
    for syntax in Syntax:
        assert any(f"`{syntax}`" in row.split("|")[1] for row in rows)
