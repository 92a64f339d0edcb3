"""Configs that are nearly right: what is read can be lowered, against any tensors."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest
from support import cases
from support.lowering import index_of

from qmanifest.dialects import DIALECTS, dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import descend, parse
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import FAMILIES

if TYPE_CHECKING:
    from qmanifest.tensors import Shape, TensorIndex

VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 4, 64, 0.5, 1.58, 2**70, "", "x", "4", "int4"),
    *([], {}, ["a"], [1], [[]], {"a": 1}, {"a": {}}, {"weight": []}),
    *({"_type": "x"}, {"_type": [], "_data": {}}, {"default": {}}, "re:(", "a*["),
)
STORED: Final[tuple[tuple[str, Shape], ...]] = (
    *(("U8", (16, 64)), ("I8", (32, 64)), ("I32", (4, 64)), ("F16", (32, 1))),
    *(("F32", ()), ("F8_E4M3", (32, 64)), ("U8", ()), ("I16", (4, 2, 40))),
    *(("BF16", (512, 1)), ("U8", (1024, 1)), ("F8_E8M0", (32, 2)), ("I64", (2,))),
    *(("U8", (0,)), ("I8", (0, 64)), ("I8", (64,)), ("F8_E4M3", ())),
)
SUFFIXES: Final = sorted({s for each in FAMILIES for _, s in each.names.suffixes})
MODULES: Final = ("model.layers.0.self_attn.q_proj", "model.layers.0.mlp.experts", "a")
PLACE: Final = Place("config.json")


def documents(dialect: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any dialect
    """Collect the dialect's documents out of the cases."""
    found = []
    for case in (*cases.load("valid").values(), *cases.load("invalid").values()):
        for text in case.files.values():
            try:
                raw = json.loads(text)
            except ValueError:
                continue
            if isinstance(raw, dict):
                found += [descend(raw, keys) for keys in dialect.locate(raw)]
    return [each for each in found if isinstance(each, dict)]


def mutated(document: dict[str, Any], random: Random) -> dict[str, Any]:
    """Change one value, at any depth."""
    document = copy.deepcopy(document)
    node: Any = document
    while node:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = random.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and random.random() < 0.7:
            node = node[key]
            continue
        if isinstance(node, dict) and random.random() < 0.2:
            del node[key]
        else:
            node[key] = random.choice(VALUES)
        break
    return document


def index(random: Random) -> TensorIndex:
    """Index tensors that are called as any format calls them."""
    words = (".weight", *SUFFIXES)
    return index_of(
        {
            random.choice(MODULES) + random.choice(words): random.choice(STORED)
            for _ in range(random.randint(0, 6))
        }
    )


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.id)
def test_what_is_read_can_be_lowered_and_measured(dialect: Any) -> None:  # noqa: ANN401 - any dialect
    random = Random(dialect.id)  # noqa: S311 - no secret
    originals = documents(dialect)
    read = 0
    for _ in range(300):
        try:
            document = parse(dialect, mutated(random.choice(originals), random), PLACE)
        except InvalidConfigError:
            continue
        names = [each.name for each in dialect.components(document, PLACE)]
        stored = index(random)
        lowered = dialect.lower(document, PLACE, dict.fromkeys(names, stored))
        dialect.lower(document, PLACE, None)
        for _, weight in lowered.manifest.weights():
            assert str(weight.scheme)
            assert weight.parts((32, 64))
            assert weight.parts((4, 32, 64))
            codes = stored.get(weight.codes)
            if codes is not None:
                weight.logical(codes)
        with suppress(EmitError):
            dialect_named(dialect.id).emit(lowered.manifest)
        read += 1
    assert read > 10
