"""What documents of all dialects are drawn from: names, lines, numbers."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from qmanifest.testing.strategies import tensor_names

Config = dict[str, Any]
Documents = st.SearchStrategy[Config]
STEMS: Final = ("a", "a.b", "l.0", "l.1", "x[0]", "re:y", "ö→*", "norm", "{z,q}")
NAMES: Final = (*(f"{stem}.weight" for stem in STEMS), "a", "norm.bias", "x0.weight")
PATTERNS: Final = (
    *("*", "l.*", "l.{0..1}.weight", "?.weight", "x[0].weight", "*.bias"),
    *("re:a.*", "re:.*\\.weight", "re:(", "{a,norm}.weight", "nothing.*"),
)

names: Final = st.sampled_from(NAMES) | tensor_names()
lines: Final = st.sampled_from(PATTERNS) | names
line_lists: Final = st.lists(lines, max_size=5, unique=True)
"""Lines of a list of ours, which has none twice."""
skips: Final = st.none() | st.lists(
    st.sampled_from((*STEMS, "lm_head", "", "(", ".*", "*", "l", "re:l.*")), max_size=4
)
"""Lists of other libraries, in whatever syntax."""
groups: Final = st.sampled_from([-1, 16, 32, 64, 128])
bits: Final = st.sampled_from([2, 3, 4, 5, 8])
flags: Final = st.booleans() | st.none()


def texts(*texts: str) -> st.SearchStrategy[str | None]:
    return st.none() | st.sampled_from(texts)


def of(method: str, **optional: st.SearchStrategy[Any]) -> Documents:
    """Draw documents with a `quant_method` and any of the other keys."""
    return st.fixed_dictionaries({"quant_method": st.just(method)}, optional=optional)
