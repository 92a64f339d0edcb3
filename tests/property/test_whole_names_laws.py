"""Law of patterns written for whole names: they match the same tensors."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from qmanifest.dialects.lowering.whole_names import as_whole_name
from qmanifest.errors import EmitError
from qmanifest.patterns import Pattern, Syntax, check, match, read_entry

SEGMENTS = ["a", "b", "ab", "10", "model", "a-b", "[a]", "a*"]
NAMES = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=4).map(".".join)
TEXTS = st.one_of(NAMES, st.text("ab.*^$|[]{}", min_size=1, max_size=6))
SYNTAXES = [syntax for syntax in Syntax if syntax not in {Syntax.EXACT, Syntax.GLOB}]


@given(
    text=TEXTS,
    syntax=st.sampled_from(SYNTAXES),
    appended=st.sampled_from(["", ".weight"]),
    names=st.lists(NAMES, max_size=10, unique=True),
)
def test_a_pattern_of_whole_names_matches_the_same(
    text: str, syntax: Syntax, appended: str, names: list[str]
) -> None:
    pattern = Pattern("re:" + text if syntax is Syntax.REGEX else text, syntax)
    assume(check(pattern) is None)
    try:
        whole = read_entry(as_whole_name(pattern, appended))
    except EmitError:
        return
    stored = [*(name + appended for name in names), "a.bias"]
    expected = match([pattern], stored, [appended]).of(0)
    # a glob means its own text too, where that happens to be a name
    found = [name for name in match([whole], stored).of(0) if name != whole.text]
    assert found == [name for name in expected if name != whole.text]
