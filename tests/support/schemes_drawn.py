"""Weights that each dialect has words for: scheme, names of parts, shapes, for tests.

Dialects that are not written come with a document of their own instead.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from support.scheme import Drawn
from support.schemes_of_libraries import (
    aqlm_weights,
    bitsandbytes_weights,
    exl2_weights,
    exl3_weights,
    gemma_weights,
    hqq_weights,
    quanto_weights,
    quark_weights,
    torchao_weights,
)
from support.schemes_of_words import (
    auto_round_weights,
    compressed_tensors_weights,
    fp8_weights,
    gptq_weights,
    modelopt_weights,
)

from qmanifest.dialects import mxfp4
from qmanifest.dialects.awq.schemes import VERSIONS
from qmanifest.dtypes import FLOAT
from qmanifest.families import (
    GPT_OSS,
    GPTQ,
    METAL,
    SCALED,
)
from qmanifest.schemes import (
    Affine,
    Dim,
    Opaque,
    OpaquePart,
)

DRAWN: Final[dict[str, st.SearchStrategy[Drawn]]] = {
    "metal": st.builds(
        lambda bits, group: Drawn(Affine(bits, group, FLOAT, "u32-lsb"), METAL.names),
        st.sampled_from([2, 4, 8]),
        st.sampled_from([32, 64]),
    ),
    "gptq": gptq_weights(),
    "awq": st.builds(
        lambda make, group: Drawn(make(4, group), GPTQ.names),
        st.sampled_from([each for key, each in VERSIONS.items() if key != "marlin"]),
        st.sampled_from([32, 64]),
    ),
    "compressed-tensors": compressed_tensors_weights(),
    "fp8": fp8_weights(),
    "modelopt": modelopt_weights(),
    "mxfp4": st.just(
        Drawn(
            mxfp4.SCHEME,
            GPT_OSS.names,
            ((2, 8, 64), (3, 4, 32)),
            parameter="experts.gate_up_proj",
        )
    ),
    "bitsandbytes": bitsandbytes_weights(),
    "auto-round": auto_round_weights(),
    "torchao": torchao_weights(),
    "hqq": hqq_weights(),
    "quanto": quanto_weights(),
    "quark": quark_weights(),
    "exl2": exl2_weights(),
    "exl3": exl3_weights(),
    "gemma": gemma_weights(),
    "aqlm": aqlm_weights(),
    "bitnet": st.just(
        Drawn(
            Opaque(
                "bitnet",
                2,
                0,
                (
                    OpaquePart("codes", ("U8",), (Dim("N", 4), Dim("K"))),
                    OpaquePart("scales", FLOAT, (Dim("one"),)),
                ),
            ),
            SCALED.names,
            document={
                "quant_method": "bitnet",
                "modules_to_not_convert": ["lm_head"],
            },
        )
    ),
}
