"""Laws of folding and of suggestions: what they say is true."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from qmanifest.patterns import (
    Pattern,
    Suggester,
    Syntax,
    check,
    fold,
    match,
    near,
    nearest,
    read_entry,
)

SEGMENTS = st.sampled_from(
    ["a", "b", "c", "weight", "bias", "0", "1", "2", "3", "10", "01", "w1", "w2", "w10"]
)
ODD_SEGMENTS = st.sampled_from(["", "a[0]", "*", "{a,b}", "é", "re:a", "a,b", "}", "?"])
NAMES = st.lists(SEGMENTS, min_size=1, max_size=4).map(".".join)
ODD_NAMES = st.lists(st.one_of(SEGMENTS, ODD_SEGMENTS), min_size=1, max_size=3)
ANY_NAMES = st.one_of(NAMES, ODD_NAMES.map(".".join))
GRIDS = st.builds(
    lambda layers, parts, leaves: [
        f"layers.{layer}.{part}.{leaf}"
        for layer in layers
        for part in parts
        for leaf in leaves
    ],
    st.sets(st.integers(0, 12), min_size=1, max_size=8),
    st.sets(st.sampled_from(["q", "k", "mlp.up", "mlp.down", "norm"]), min_size=1),
    st.sets(st.sampled_from(["weight", "bias"]), min_size=1),
)
UNIVERSES = st.one_of(GRIDS, st.lists(ANY_NAMES, max_size=14))


def meant(texts: tuple[str, ...], universe: set[str]) -> set[str]:
    """Match one pattern with one name at a time."""
    patterns = [read_entry(text) for text in texts]
    assert [check(pattern) for pattern in patterns] == [None] * len(patterns)
    return {n for n in universe for p in patterns if match([p], [n]).of(0)}


@given(universe=UNIVERSES, data=st.data())
def test_folded_names_are_the_selected_ones(
    universe: list[str], data: st.DataObject
) -> None:
    selected = {name for name in universe if data.draw(st.booleans())}
    texts = fold(selected, universe)
    assert meant(texts, set(universe)) == selected
    assert len(texts) <= len(selected)


@given(universe=UNIVERSES, data=st.data())
def test_the_order_of_the_names_is_no_matter(
    universe: list[str], data: st.DataObject
) -> None:
    selected = universe[::2]
    texts = fold(selected, universe)
    assert texts == tuple(sorted(set(texts)))
    shuffled = data.draw(st.permutations(universe))
    assert fold([*selected[::-1], *selected], shuffled) == texts


@given(universe=UNIVERSES)
def test_no_folded_pattern_can_be_left_out(universe: list[str]) -> None:
    selected = set(universe[: len(universe) // 2])
    texts = fold(selected, universe)
    for number in range(len(texts)):
        rest = (*texts[:number], *texts[number + 1 :])
        assert meant(rest, set(universe)) < selected


@given(grid=GRIDS)
def test_a_full_grid_is_one_pattern(grid: list[str]) -> None:
    assert len(fold(grid, [*grid, "head.weight"])) == 1


@given(names=st.lists(ANY_NAMES, max_size=8), entry=ANY_NAMES)
def test_a_suggested_change_makes_the_entry_match(names: list[str], entry: str) -> None:
    suggester = Suggester(names)
    for pattern in (read_entry(entry), Pattern(entry, Syntax.EXACT)):
        change = suggester.near(pattern)
        if change is None:
            continue
        assert not match([pattern], names).of(0)
        changed = Pattern(change.applied_to(pattern.text), pattern.syntax)
        assert change.example in names
        assert change.example in match([changed], names).of(0)
        assert change.old != change.new


@given(
    rest=st.lists(SEGMENTS, min_size=2, max_size=4).map(".".join),
    old=st.sampled_from(["", "x.", "x.y."]),
    new=st.sampled_from(["", "z.", "z.x."]),
    others=st.lists(NAMES, max_size=6),
    star=st.booleans(),
)
def test_a_changed_prefix_is_found(
    rest: str, old: str, new: str, others: list[str], *, star: bool
) -> None:
    assume(old != new)
    entry = old + rest
    head, _, _ = entry.rpartition(".")
    entry = f"{head}.*" if star and "." in head else entry
    names = [*others, new + rest]
    assume(not match([read_entry(entry)], names).of(0))
    assert near(read_entry(entry), names) is not None


@given(names=st.lists(ANY_NAMES, max_size=40), text=st.text("abwt.01", max_size=12))
def test_the_nearest_name_is_a_name(names: list[str], text: str) -> None:
    found = nearest(text, names)
    assert found is None or found in names
    if text in names:
        assert found == text
