"""Formats whose codes look values up, and those of exllama."""

from __future__ import annotations

from typing import Final

from qmanifest.families.base import Family, PartNames, parts_of

BNB4: Final = Family(
    "bnb4",
    "bitsandbytes 4-bit",
    PartNames(
        "",
        (
            ("scales", ".absmax"),
            ("quant_map", ".quant_map"),
            ("nested_absmax", ".nested_absmax"),
            ("nested_quant_map", ".nested_quant_map"),
            ("quant_state", ".quant_state.bitsandbytes__nf4"),
            ("quant_state_fp4", ".quant_state.bitsandbytes__fp4"),
        ),
    ),
    ("U8", "I8"),
    ("scales", "quant_map", "quant_state", "quant_state_fp4"),
    own=("scales", "quant_map"),
)


BNB8: Final = Family(
    "bnb8",
    "bitsandbytes int8",
    parts_of(".weight", scales=".SCB", format=".weight_format"),
    ("I8",),
    ("scales",),
    own=("scales",),
)


AQLM: Final = Family(
    "aqlm",
    "AQLM",
    parts_of(".codes", scales=".scales", codebooks=".codebooks"),
    ("I8", "I16", "I32", "I64"),
    ("codebooks",),
    own=("codebooks",),
)


VPTQ: Final = Family(
    "vptq",
    "VPTQ",
    parts_of(
        ".indices",
        centroids=".centroids.weight",
        res_indices=".res_indices",
        res_centroids=".res_centroids.weight",
        outlier_indices=".outlier_indices",
        outlier_centroids=".outlier_centroids.weight",
        weight_scale=".weight_scale",
        weight_bias=".weight_bias",
        perm=".perm",
    ),
    ("I32", "I16"),
    ("centroids",),
    own=("centroids",),
)


SPQR: Final = Family(
    "spqr",
    "SpQR",
    parts_of(
        ".dense_weights",
        row_offsets=".row_offsets",
        col_vals=".col_vals",
        in_perm=".in_perm",
    ),
    ("I64",),
    alone=("I64",),
    own=("col_vals", "in_perm"),
)


HIGGS: Final = Family(
    "higgs",
    "HIGGS",
    parts_of(".weight", scales=".scales", tables=".tables", tables2=".tables2"),
    ("I16",),
    ("tables", "tables2"),
    own=("tables", "tables2"),
)


EXL2: Final = Family(
    "exl2",
    "EXL2",
    parts_of(
        ".q_weight",
        scales=".q_scale",
        scale_max=".q_scale_max",
        groups=".q_groups",
        order=".q_invperm",
    ),
    ("I32",),
    alone=("I32",),
    own=("scale_max", "groups", "order"),
)


EXL3: Final = Family(
    "exl3",
    "EXL3",
    parts_of(
        ".trellis",
        input_signs=".suh",
        output_signs=".svh",
        input_bits=".su",
        output_bits=".sv",
        multiplier=".mcg",
        other_multiplier=".mul1",
    ),
    ("I16",),
    alone=("I16",),
    own=("input_signs", "output_signs"),
)
