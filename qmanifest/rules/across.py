"""QM8: that the files of one checkpoint agree with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dimensions import TEXT_CONFIGS
from qmanifest.findings import DefectKind, Location, Problem, Severity
from qmanifest.reading.config_file import MODEL_CONFIG
from qmanifest.rules.base import Depth, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.reading.stores import Store

HEAD: Final = "lm_head.weight"
OTHER_HEADS: Final = ("output", "output_layer", "embed_out", "head", "proj_out")
"""What families that do not call it `lm_head` call the head."""
EMBEDDING: Final = ("embed_tokens.weight", "wte.weight", "tok_embeddings.weight")
GENERATES: Final = ("ForCausalLM", "ForConditionalGeneration")
"""Endings of the architectures that have a head over the vocabulary."""


@rule("QM801", "twins-disagree", Severity.ERROR, needs=Depth.MANIFEST)
def twins_disagree(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Two copies of a quantization config say different things.

    MLX writes one block under `quantization` and `quantization_config`.

    ## Why it matters
    Loaders differ in which of the two they read.

    ## Fix
    Make both say the same.
    """
    yield from checkpoint.defects_of(DefectKind.TWINS_DISAGREE)


@rule(
    "QM802",
    "tied-head",
    Severity.WARNING,
    needs=Depth.HEADERS,
    absence=True,
    any_files=True,
)
def tied_head(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The head is tied to the embedding and stored too, or neither.

    ## Why it matters
    A stored copy of a tied head wastes its bytes, and strict loaders refuse it; an
    untied head that is absent is left at random values.

    ## Fix
    Drop the copy, or correct `tie_word_embeddings`.
    """
    config = checkpoint.model_config
    tied = _tied(config)
    if tied is None:
        return
    architectures = config.get("architectures")
    names = map(str, architectures if isinstance(architectures, list) else ())
    generates = any(name.endswith(GENERATES) for name in names)
    at = Location(MODEL_CONFIG, "/tie_word_embeddings")
    for store in checkpoint.all_stores:
        logical = store.evidence.logical
        heads = [n for n in logical if n == HEAD or n.endswith(f".{HEAD}")]
        embeddings = [name for name in logical if name.endswith(EMBEDDING)]
        if tied and heads and embeddings:
            head = store.evidence.tensor(heads[0])
            yield Problem(
                f"tie_word_embeddings is true and {head.name!r} ({head}) is stored "
                f"beside {embeddings[0]!r}: {head.nbytes:,} bytes",
                (Location(head.file, tensor=head.name), at),
                expected=None,
                actual=str(head),
                hint="drop the head, or set tie_word_embeddings to false",
            )
        elif not (tied or heads or _other_heads(store)) and generates and embeddings:
            embedding = store.evidence.tensor(embeddings[0])
            yield Problem(
                f"tie_word_embeddings is false and no {HEAD!r} is stored beside "
                f"{embedding.name!r}",
                (at, Location(embedding.file, tensor=embedding.name)),
                expected=HEAD,
                hint="set tie_word_embeddings to true, or store the head",
            )


def _tied(config: Mapping[str, Any]) -> bool | None:
    """Read whether the head is tied; None where the config says nothing, or both."""
    inner = [config.get(key) for key in TEXT_CONFIGS]
    scopes = [config, *(each for each in inner if isinstance(each, dict))]
    values = [scope.get("tie_word_embeddings") for scope in scopes]
    said = {value for value in values if isinstance(value, bool)}
    return said.pop() if len(said) == 1 else None


def _other_heads(store: Store) -> list[str]:
    """List the weights that may be a head under another name."""
    modules = ((name, name.removesuffix(".weight")) for name in store.index)
    return [name for name, stem in modules if stem.split(".")[-1] in OTHER_HEADS]


RULES = (twins_disagree, tied_head)
