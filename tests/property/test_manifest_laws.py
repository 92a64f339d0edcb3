"""Laws of the manifest: its JSON loses nothing and fits its schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

from qmanifest.dtypes import nbytes
from qmanifest.findings import Severity
from qmanifest.manifest import Entry, Manifest, from_json, to_json
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schema import schema
from qmanifest.testing.strategies import manifests, weights

if TYPE_CHECKING:
    from qmanifest.manifest import Weight

VALIDATOR: Final = Draft202012Validator(schema("manifest"), registry=Registry())
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
entries = st.builds(
    Entry,
    words,
    st.builds(Pattern, words, st.sampled_from(Syntax)),
    st.sampled_from(["quantize", "keep"]),
    st.lists(words, max_size=3).map(tuple),
    st.sampled_from([None, *Severity]),
    words,
)


@st.composite
def full_manifests(draw: st.DrawFn) -> Manifest:
    """Draw manifests whose components have entries, with any text anywhere."""
    from dataclasses import replace

    manifest = draw(manifests())
    components = tuple(
        replace(
            component,
            entries=tuple(draw(st.lists(entries, max_size=3))),
            pointer=draw(words),
            exhaustive=draw(st.booleans()),
        )
        for component in manifest.components
    )
    return Manifest(draw(words), draw(words | st.none()), components)


@given(manifest=full_manifests())
def test_json_loses_nothing_and_fits_the_schema(manifest: Manifest) -> None:
    text = to_json(manifest)
    assert from_json(text) == manifest
    assert to_json(from_json(text)) == text
    VALIDATOR.validate(json.loads(text))


@given(weight=weights())
def test_parts_have_names_of_their_own_and_known_sizes(weight: Weight) -> None:
    parts = weight.parts()
    assert len({part.name for part in parts}) == len(parts)
    assert len({part.role for part in parts}) == len(parts)
    assert parts[0].name == weight.name
    for part in parts:
        assert part.shape is not None
        assert part.nbytes == nbytes(part.dtypes[0], part.shape)
    assert weight.parts(weight.shape) == parts
