"""Schemas and readers agree about any value of any key, in every dialect."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from referencing import Registry

from qmanifest.dialects import DIALECTS, dialect_named
from qmanifest.schema import schema

VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 4, 64, 0.5, "", "x", "4", "nan", "x" * 1025),
    *([], {}, ["a"], [1], {"a": 1}, {"a": {}}, "nf4", "mcg", "int8"),
)
values = st.sampled_from(VALUES)


def documents(dialect: str) -> st.SearchStrategy[dict[str, Any]]:
    """Any values under the dialect's own keys, and under some that it does not have."""
    fields = dialect_named(dialect).document.model_fields.items()
    keys = dict.fromkeys((field.alias or name for name, field in fields), values)
    method = st.one_of(st.just(dialect), values)
    own = {**keys, "extra": values, "quant_method": method}
    return st.fixed_dictionaries({}, optional=own)


@pytest.mark.parametrize("dialect", [each.id for each in DIALECTS])
def test_values_under_any_key(dialect: str) -> None:
    validator = Draft202012Validator(schema(dialect), registry=Registry())

    @given(documents(dialect))
    def agree(document: dict[str, Any]) -> None:
        try:
            dialect_named(dialect).document.model_validate(document)
            accepted = True
        except ValidationError:
            accepted = False
        errors = [each.message for each in validator.iter_errors(document)]
        assert accepted == (not errors), (document, errors)

    agree()
