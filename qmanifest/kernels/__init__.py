"""Fast kernels for whole weights; the readable modules judge them, bit for bit.

`active()` gives the set to use: compiled by numba where that is installed (the extra
`fast`), else careful numpy. `QMANIFEST_KERNELS=reference` takes the readable modules
instead, and `QMANIFEST_KERNELS=fast` insists on numba.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

from qmanifest.errors import BackendError

if TYPE_CHECKING:
    from qmanifest.kernels.base import Kernels

CHOICES: Final = ("reference", "fast")
"""What `QMANIFEST_KERNELS` may be."""


def active() -> Kernels:
    """Choose the kernels of this process.

    Raises:
        BackendError: `QMANIFEST_KERNELS` is neither of its values.
        MissingLibraryError: it asks for numba where there is none.

    """
    return _chosen(os.environ.get("QMANIFEST_KERNELS", ""))


def are_compiled() -> bool:
    """Tell whether compiled kernels are to be used: see `active`."""
    return active().name == "compiled"


@cache
def _chosen(asked: str) -> Kernels:
    if asked and asked not in CHOICES:
        raise BackendError(
            f"QMANIFEST_KERNELS is {asked!r}; set it to {' or '.join(CHOICES)}"
        )
    if asked == "reference":
        from qmanifest.kernels import reference  # noqa: PLC0415 - only what is used

        return reference.KERNELS
    if _compiled_runs():
        from qmanifest.kernels import compiled  # noqa: PLC0415 - only what is used

        return compiled.KERNELS
    if asked == "fast":
        from qmanifest.backends.base import MissingLibraryError  # noqa: PLC0415 - likewise

        raise MissingLibraryError(
            "QMANIFEST_KERNELS is 'fast', which needs numba; "
            "install it with: pip install 'qmanifest[fast]'",
            name="numba",
        )
    from qmanifest.kernels import careful  # noqa: PLC0415 - only what is used

    return careful.KERNELS


def _compiled_runs() -> bool:
    """Tell whether compiled kernels can run here.

    Their words are read as the machine's own integers, so it must be little-endian.
    """
    if sys.byteorder != "little" or importlib.util.find_spec("numba") is None:
        return False
    try:
        from qmanifest.kernels import native_files  # noqa: PLC0415 - llvmlite

        if (
            not native_files.any_kept()
        ):  # for these versions: then numba was imported before
            import numba  # noqa: F401, PLC0415 - whether it can be is the question
    except ImportError:  # as with a numpy that is newer than numba knows
        return False
    return True
