"""AWQ's layouts by the names that configs have for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.schemes.qweight import awq_gemm, awq_gemv, awq_gemv_fast, marlin

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.schemes import Scheme

BITS: Final = 4
VERSIONS: Final[dict[str, Callable[[int, int], Scheme]]] = {
    "gemm": awq_gemm,
    "gemv": awq_gemv,
    "gemv_fast": awq_gemv_fast,
    "llm-awq": awq_gemv_fast,
    "exllama": awq_gemm,
    "exllamav2": awq_gemm,
    "ipex": awq_gemm,
    "marlin": marlin,
}
"""The layouts, and the scheme of each by bits and group size. Some name the kernels
that read the first one."""
