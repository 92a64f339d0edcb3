"""QM2, entries: that every line of the config does what it seems to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import DefectKind, Location, Problem, Severity
from qmanifest.patterns import Suggester, Syntax
from qmanifest.rules.base import Depth, of_component, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Entry
    from qmanifest.patterns import Change


@rule("QM203", "dead-entry", Severity.ERROR, needs=Depth.HEADERS, absence=True)
def dead_entry(checkpoint: Checkpoint) -> Iterator[Problem]:
    """An entry of the config matches no tensor.

    A plain name that is absent is an error. A pattern may be there for the sake of
    another model, so a dead one is a warning, and a dead protected substring a note.

    ## Why it matters
    A keep list that names nothing keeps nothing: the layer it meant is quantized.

    ## Fix
    Correct the name (the hint has the nearest one), or remove the entry.
    """
    for component, store in checkpoint.found():
        suggest: Suggester | None = None
        for entry in component.entries:
            dead = not entry.matches and entry.unused is not None
            if not dead or (component.name, entry.pointer) in checkpoint.renames:
                continue
            text = entry.pattern.text
            suggest = suggest or Suggester(store.evidence.logical)
            nearest = suggest.nearest(text + entry.appended)
            hint = f"did you mean {nearest!r}?" if nearest else "remove the entry"
            verb = "keeps" if entry.purpose == "keep" else "quantizes"
            related = (
                (Location(store.evidence.tensor(nearest).file, tensor=nearest),)
                if nearest
                else ()
            )
            yield Problem(
                f"{entry.pattern.syntax} entry {text!r} {verb} nothing: no tensor"
                f"{of_component(component)} matches",
                (
                    Location(checkpoint.config_name, entry.pointer, _name(entry)),
                    *related,
                ),
                actual=0,
                hint=hint,
                severity=entry.unused,
            )


def _name(entry: Entry) -> str | None:
    """Name the tensor that an entry is about; a pattern is about none."""
    exact = entry.pattern.syntax is Syntax.EXACT
    return entry.pattern.text + entry.appended if exact else None


@rule("QM204", "renamed", Severity.ERROR, needs=Depth.HEADERS, absence=True)
def renamed(checkpoint: Checkpoint) -> Iterator[Problem]:
    """An entry matches nothing as it is, and would match under another prefix.

    ## Why it matters
    The model was renamed after the config was written (`model.` moved, a wrapper's
    name was added), so every entry of its kind is dead, and defaults apply instead.

    ## Fix
    Replace the prefix or suffix in the entries, as the hint says.
    """
    if not checkpoint.renames:
        return
    for component, store in checkpoint.found():
        for entry in component.entries:
            change = checkpoint.renames.get((component.name, entry.pointer))
            if change is None or _harmless(entry.unused, entry.pattern.syntax):
                continue
            example = change.example + entry.appended
            tensor = store.evidence.tensor(example)
            yield Problem(
                f"entry {entry.pattern.text!r} matches nothing"
                f"{of_component(component)}, and "
                f"would match {example!r} (stored {tensor}) with {change.kind} "
                f"{change.old!r} replaced by {change.new!r}",
                (
                    Location(checkpoint.config_name, entry.pointer, example),
                    Location(tensor.file, tensor=example),
                ),
                expected=example,
                actual=entry.pattern.text,
                hint=_instruction(change),
                severity=_severity(entry),
            )


def _severity(entry: Entry) -> Severity | None:
    """Judge a renamed entry: as a dead one where it keeps modules, or that is a note.

    Lists of modules come from the model in memory, whose names files may not have.
    """
    keeps_module = entry.purpose == "keep" and bool(entry.appended)
    milder = keeps_module or entry.unused is Severity.NOTE
    return entry.unused if milder else None


def _instruction(change: Change) -> str:
    """Tell how to change the entry."""
    if not change.old:
        return f"add {change.kind} {change.new!r} to the entry"
    if not change.new:
        return f"remove {change.kind} {change.old!r} from the entry"
    return f"replace {change.kind} {change.old!r} by {change.new!r}"


def _harmless(unused: Severity | None, syntax: Syntax) -> bool:
    """Whether nobody expects the entry to match: a substring that others use."""
    return unused is None and syntax is not Syntax.EXACT


@rule("QM205", "foreign-syntax", Severity.WARNING, needs=Depth.MANIFEST)
def foreign_syntax(checkpoint: Checkpoint) -> Iterator[Problem]:
    """An entry is written in the pattern syntax of another dialect.

    A `*`, or a regular expression's `^` and `$`, among plain substrings.

    ## Why it matters
    Readers of this dialect look for the characters as they are, and find nothing.

    ## Fix
    Write the entry in the dialect's own syntax.
    """
    yield from checkpoint.defects_of(DefectKind.FOREIGN_SYNTAX)


@rule("QM211", "shadowed", Severity.WARNING, needs=Depth.HEADERS)
def shadowed(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A pattern decides nothing, or everything.

    Every tensor that it matches is decided by a plain name or an earlier pattern, or
    a keep pattern matches all there is.

    ## Why it matters
    The pattern does not do what its author meant.

    ## Fix
    Remove or narrow it.
    """
    plain = Syntax.EXACT  # looked up once: there may be an entry for every tensor
    for component, store in checkpoint.found():
        patterns = [
            entry
            for entry in component.entries
            if entry.pattern.syntax is not plain and entry.matches
        ]
        if not patterns:
            continue
        decided = {weight.name: weight.pointer for weight in component.weights}
        for entry in patterns:
            if entry.purpose == "quantize":
                idle = all(decided.get(n) != entry.pointer for n in entry.matches)
                fault = "is shadowed: other entries decide all of its" if idle else ""
            else:
                every = len(entry.matches) == len(store.evidence.logical)
                fault = "keeps everything: it matches all" if every else ""
            if fault and len(store.evidence.logical) > 1:
                yield Problem(
                    f"pattern {entry.pattern.text!r} {fault} {len(entry.matches)} "
                    "tensors",
                    (Location(checkpoint.config_name, entry.pointer),),
                    actual=len(entry.matches),
                    hint="remove or narrow the pattern",
                )


RULES = (dead_entry, renamed, foreign_syntax, shadowed)
