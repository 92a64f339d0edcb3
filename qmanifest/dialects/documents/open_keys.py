"""Documents with keys that are not known in advance, all of one form.

pydantic takes further keys of a document all or none; here they have to match a
pattern, and at least one has to be there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ModelWrapValidatorHandler, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)


def read_open(
    model: type[M],
    value: Any,  # noqa: ANN401 - JSON
    read: ModelWrapValidatorHandler[M],
    pattern: str,
    missing: str,
) -> M:
    """Read a document; the body of a `model_validator` of mode "wrap".

    Args:
        model: the document, which allows extra keys and says of what type they are.
        value: what is to be read.
        read: pydantic's own way to read it.
        pattern: regular expression of the keys that are allowed beside the fields.
        missing: what to call such a key where there is none.

    Raises:
        ValidationError: with every problem at once.

    """
    if not isinstance(value, dict):
        return read(value)
    fields = {field.alias or name for name, field in model.model_fields.items()}
    further = [key for key in value if key not in fields]
    unknown = [key for key in further if not re.fullmatch(pattern, key)]
    errors = [
        _error("extra_forbidden", "it is no key here", key, value[key])
        for key in unknown
    ]
    if len(unknown) == len(further):
        errors.append(_error("missing", "there is no such key", missing, value))
    refused = set(unknown)
    try:
        document = read({k: v for k, v in value.items() if k not in refused})
    except ValidationError as error:
        errors += [_again(detail) for detail in error.errors(include_url=False)]
    if errors:
        raise ValidationError.from_exception_data(model.__name__, errors)
    return document


def _error(kind: str, said: str, key: str, value: object) -> InitErrorDetails:
    """Make an error of one key."""
    return InitErrorDetails(
        type=PydanticCustomError(kind, said), loc=(key,), input=value
    )


def _again(detail: ErrorDetails) -> InitErrorDetails:
    """Carry one of pydantic's own errors over into a new ValidationError."""
    said = PydanticCustomError(detail["type"], "{said}", {"said": detail["msg"]})
    return InitErrorDetails(type=said, loc=detail["loc"], input=detail["input"])
