"""Values are found in JSON text by their pointers."""

from __future__ import annotations

import pytest

from qmanifest.reading.json_text import locate, locate_all

TEXT = """\
{
  "bits": 4,
  "tensors": {
    "a/b~c": {"shape": [8,
                        64]},
    "": 1, "q\\u0022\\n": [[], {"x": null}]
  }
}
"""


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", (1, 1)),
        ("/bits", (2, 3)),
        ("/tensors", (3, 3)),
        ("/tensors/a~1b~0c", (4, 5)),
        ("/tensors/a~1b~0c/shape", (4, 15)),
        ("/tensors/a~1b~0c/shape/0", (4, 25)),
        ("/tensors/a~1b~0c/shape/1", (5, 25)),
        ("/tensors/", (6, 5)),
        ('/tensors/q"\n', (6, 12)),
        ('/tensors/q"\n/0', (6, 26)),
        ('/tensors/q"\n/1/x', (6, 31)),
        ("/tensors/a~1b~0c/shape/2", None),
        ("/tensors/a~1b~0c/shape/01", None),
        ("/tensors/a~1b~0c/shape/-", None),
        ("/absent/deeper", None),
        ("/bits/0", None),
        ("bits", None),
    ],
)
def test_pointer_is_found_at(pointer: str, place: tuple[int, int] | None) -> None:
    assert locate(TEXT, pointer) == place


def test_many_pointers_are_found_in_one_pass() -> None:
    found = locate_all(TEXT, ["/tensors/", "/bits", "/none", "/bits"])
    assert found == {"/bits": (2, 3), "/tensors/": (6, 5)}


@pytest.mark.parametrize("text", ["", "  ", "{", '{"a"', '{"a": [', "[1 2 3", "nope"])
def test_text_that_is_no_json_is_searched_as_far_as_it_goes(text: str) -> None:
    assert locate(text, "/b") is None
    assert locate(text, "/a/0") is None


def test_first_of_repeated_keys_is_found() -> None:
    assert locate('{"a": 1,\n"a": 2}', "/a") == (1, 2)


def test_scalar_is_the_whole_document() -> None:
    assert locate("\n 7", "") == (2, 2)
