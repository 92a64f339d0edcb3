"""`vptq`: vectors of outputs from a table; shapes are checked, values are not decoded.

Source: https://github.com/microsoft/VPTQ, `vptq/layers/vqlinear.py`; what is known is
retold in docs/dialects/vptq.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.undecoded import ListedConfig, undecoded
from qmanifest.dialects.vptq.schemes import scheme
from qmanifest.families import VPTQ
from qmanifest.findings import Severity
from qmanifest.patterns import Pattern, Syntax

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.undecoded import Parts
    from qmanifest.schemes import Opaque
    from qmanifest.tensors import TensorIndex

Pair: TypeAlias = Annotated[tuple[int, int], Field(strict=False)]
"""A number of the outliers, and one of all others; -1 where there are none."""


class Layer(BaseModel):
    """What a layer is quantized with; other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    vector_lens: Pair = (-1, -1)
    """Outputs of a vector."""
    num_centroids: Pair = (-1, -1)
    """Vectors of a table."""
    num_res_centroids: Pair = (-1, -1)
    """Vectors of the table for what the first one leaves."""
    group_num: int = 1
    """Groups of inputs; each has tables of its own."""
    group_size: int = -1
    """Inputs of a group."""
    outlier_size: int = 0
    """Inputs that are quantized apart."""
    in_features: int = -1
    out_features: int = -1
    enable_norm: bool = True
    """Whether each input has a scale and a bias."""
    enable_perm: bool = True
    """Whether inputs are in an order of their own."""
    is_indice_packed: bool = True
    """Whether indices are packed into words; transformers reads no others."""
    indices_as_float: bool = False


class VptqConfig(ListedConfig):
    """The document exactly as stored."""

    config_for_layers: dict[str, Layer] | None = None
    """What each layer is quantized with, by the whole name of its module."""
    shared_layer_config: dict[str, Layer] | None = None
    """The same for layers that are in no other list, by the second part of the name."""
    enable_proxy_error: bool | None = None
    """For quantizing alone; transformers refuses true."""

    def claims(self, index: TensorIndex | None) -> list[Claim]:
        """List what stays 16-bit, and the layers that are named."""
        return super().claims(index) + [
            Claim(
                ("config_for_layers", module),
                Pattern(module, Syntax.EXACT),
                "quantize",
                Severity.WARNING,
                SUFFIX,
            )
            for module in self.config_for_layers or ()
        ]

    def layer(self, module: str) -> Layer | None:
        """Find what a layer is quantized with, as transformers does."""
        own = (self.config_for_layers or {}).get(module)
        _, _, rest = module.partition(".")
        shared = (self.shared_layer_config or {}).get(rest.partition(".")[0])
        return own or shared


def _scheme(said: VptqConfig, name: str, parts: Parts) -> Opaque:
    return scheme(said.layer(name.removesuffix(SUFFIX)), parts)


DIALECT: Final = undecoded(
    "vptq", "VPTQ, vectors of outputs from a table", VptqConfig, VPTQ, _scheme
)
