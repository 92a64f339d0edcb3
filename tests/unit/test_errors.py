"""Exceptions: data as attributes, a message with the way out, and pickling."""

from __future__ import annotations

import pickle

import pytest

from qmanifest import errors
from qmanifest.errors import (
    InvalidCheckpointError,
    InvalidConfigError,
    QManifestError,
    UnknownDialectError,
)
from qmanifest.findings import Defect, DefectKind, Location, Problem

DEFECTS = (
    Defect(DefectKind.MISSING_KEY, Problem("no bits", (Location("q.json", "/bits"),))),
    Defect(DefectKind.NO_CONFIG, Problem("nothing", (Location(pointer="/x"),))),
    Defect(DefectKind.LABEL, Problem("nowhere")),
)
RAISED = (
    UnknownDialectError("z", ["x", "y"]),
    InvalidConfigError("mlx", DEFECTS),
    InvalidCheckpointError("out", ["QM201: one", "QM203: two"]),
    errors.PatternError("it is empty"),
)


def test_every_exception_has_one_base() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    ours = [each for each in classes if issubclass(each, Exception)]
    assert len(ours) > 5
    assert all(issubclass(each, QManifestError) for each in ours)
    assert all(each.__doc__ for each in ours)


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_pickling(error: QManifestError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_unknown_dialect_is_named_beside_the_known_ones() -> None:
    error = RAISED[0]
    assert isinstance(error, UnknownDialectError)
    assert (error.name, error.known) == ("z", ("x", "y"))
    assert str(error) == "there is no dialect 'z'. Name one of x, y."


def test_invalid_config_has_a_line_for_each_defect() -> None:
    assert str(RAISED[1]).splitlines() == [
        "not a valid mlx config:",
        "  q.json#/bits: no bits",
        "  #/x: nothing",
        "  nowhere",
    ]


def test_invalid_checkpoint_has_a_line_for_each_error() -> None:
    error = RAISED[2]
    assert isinstance(error, InvalidCheckpointError)
    assert error.messages == ("QM201: one", "QM203: two")
    assert str(error).splitlines() == [
        "out is not what its config says:",
        "  QM201: one",
        "  QM203: two",
    ]
