"""`aqlm`: sums of vectors from codebooks; shapes are checked, values are not decoded.

A code stands for a patch of outputs by inputs, and all of a layer's codebooks have a
vector for it.

Source: https://github.com/Vahe1994/AQLM, `inference_lib/src/aqlm/inference.py`; what
is known is retold in docs/dialects/aqlm.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from annotated_types import Ge, Gt, Le
from pydantic import Field

from qmanifest.dialects.lowering.undecoded import UndecodedConfig, kept, undecoded
from qmanifest.dtypes import FLOAT
from qmanifest.families import AQLM
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.claims import Claim
    from qmanifest.dialects.lowering.undecoded import Parts
    from qmanifest.tensors import TensorIndex

Positive: TypeAlias = Annotated[int, Gt(0)]
KEEPS: Final = "linear_weights_not_to_quantize"
WORDS: Final = ((8, "I8"), (16, "I16"), (32, "I32"), (64, "I64"))
"""The most bits of a code, and the dtype that is narrow enough for it."""
ONE: Final = Dim("one")


class AqlmConfig(UndecodedConfig):
    """The document exactly as stored."""

    in_group_size: Positive = 8
    """Inputs of a patch."""
    out_group_size: Positive = 1
    """Outputs of a patch."""
    num_codebooks: Positive = 1
    """Codebooks whose vectors are added up."""
    nbits_per_codebook: Annotated[int, Ge(1), Le(64)] = 16
    """Bits of a code; a codebook has `2**bits` vectors."""
    linear_weights_not_to_quantize: Annotated[
        tuple[str, ...] | None, Field(strict=False)
    ] = None
    """Parameters that stay 16-bit, by their whole names."""

    def claims(self, index: TensorIndex | None) -> list[Claim]:
        """List what stays 16-bit."""
        return kept(KEEPS, self.linear_weights_not_to_quantize, index)

    def every_linear(self) -> bool:
        """Whether every linear layer is quantized that no line keeps."""
        return True


def _scheme(said: AqlmConfig, _name: str, _parts: Parts) -> Opaque:
    """Name the scheme of a weight by what the document says of all."""
    rows, columns = said.out_group_size, said.in_group_size
    books, bits = Dim("one", times=said.num_codebooks), said.nbits_per_codebook
    dtype = next(word for most, word in WORDS if bits <= most)
    vectors, outputs = Dim("one", times=1 << bits), Dim("one", times=rows)
    codebook = (books, vectors, outputs, Dim("one", times=columns))
    patch, each = rows * columns, bits * said.num_codebooks
    stored = (
        OpaquePart("codes", (dtype,), (Dim("N", rows), Dim("K", columns), books)),
        OpaquePart("scales", FLOAT, (Dim("N", rows), ONE, ONE, ONE)),
        OpaquePart("codebooks", FLOAT, codebook),
    )
    return Opaque("aqlm", 0 if each % patch else each // patch, columns, stored)


DIALECT: Final = undecoded(
    "aqlm", "AQLM, sums of vectors from codebooks", AqlmConfig, AQLM, _scheme
)
