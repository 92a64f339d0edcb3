"""Every reader that is known, and who reads which list of which format.

The same list means different names to different libraries, and no format says which
of them is right. To add a reader, add a `Reader` and name it in `READ_BY`.
"""

from __future__ import annotations

from typing import Final

from qmanifest.patterns.reader import Reader
from qmanifest.patterns.syntax import Syntax

_ALL: Final = (
    Reader(
        "mlx",
        "mlx-lm and mlx-vlm",
        (Syntax.EXACT,),
        "ml-explore/mlx-lm, mlx_lm/utils.py, class_predicate",
    ),
    Reader(
        "transformers",
        "transformers",
        (Syntax.BOUNDARY,),
        "huggingface/transformers, quantizers/quantizers_utils.py, "
        "should_convert_module",
    ),
    Reader(
        "transformers-embeddings",
        "transformers, modules_to_convert",
        (Syntax.SUFFIX,),
        "huggingface/transformers, quantizers/quantizer_finegrained_fp8.py",
    ),
    Reader(
        "gptq-dynamic",
        "GPTQModel and vLLM, dynamic",
        (Syntax.DYNAMIC,),
        "ModelCloud/GPTQModel, quantization/config.py, _resolve_dynamic_override",
        first_wins=True,
    ),
    Reader(
        "vllm-gptq",
        "vLLM, modules_in_block_to_quantize",
        (Syntax.SUBSTRING,),
        "vllm-project/vllm, layers/quantization/utils/gptq_utils.py",
        fused="shards",
    ),
    Reader(
        "optimum",
        "optimum, modules_in_block_to_quantize",
        (Syntax.SUFFIX,),
        "huggingface/optimum, optimum/gptq/quantizer.py, convert_model",
    ),
    Reader(
        "autoawq",
        "AutoAWQ",
        (Syntax.IN_BLOCK,),
        "casper-hansen/AutoAWQ, awq/utils/module.py, exclude_layers_to_not_quantize",
        blocks_only=True,
    ),
    Reader(
        "vllm-awq",
        "vLLM for AWQ",
        (Syntax.SUBSTRING,),
        "vllm-project/vllm, layers/quantization/utils/quant_utils.py, "
        "is_layer_skipped(skip_with_substr=True)",
        fused="shards",
    ),
    Reader(
        "compressed-tensors",
        "compressed-tensors",
        (Syntax.EXACT,),
        "vllm-project/compressed-tensors, utils/match.py, is_match",
        marked=Syntax.RE_MATCH,
        classes="name",
    ),
    Reader(
        "vllm-compressed-tensors",
        "vLLM for compressed-tensors",
        (Syntax.EXACT,),
        "vllm-project/vllm, layers/quantization/compressed_tensors/utils.py",
        marked=Syntax.RE_MATCH,
        fused="either",
        classes="part",
    ),
    Reader(
        "vllm-fp8",
        "vLLM for FP8",
        (Syntax.EXACT,),
        "vllm-project/vllm, layers/quantization/utils/quant_utils.py, is_layer_skipped",
        fused="shards",
    ),
    Reader(
        "modelopt",
        "NVIDIA ModelOpt",
        (Syntax.FNMATCH,),
        "NVIDIA/Model-Optimizer, modelopt/torch/export/quant_utils.py",
    ),
    Reader(
        "vllm-modelopt",
        "vLLM for ModelOpt",
        (Syntax.EXACT, Syntax.SUBSTRING, Syntax.FNMATCH),
        "vllm-project/vllm, layers/quantization/modelopt.py, is_layer_excluded",
        fused="either",
    ),
    Reader(
        "vllm-bitsandbytes",
        "vLLM for bitsandbytes",
        (Syntax.SEGMENT,),
        "vllm-project/vllm, layers/quantization/bitsandbytes.py, is_layer_skipped_bnb",
    ),
    Reader(
        "torchao",
        "torchao, FqnToConfig",
        (Syntax.EXACT,),
        "pytorch/ao, torchao/quantization/quant_api.py",
        marked=Syntax.REGEX,
        exact_wins=True,
    ),
    Reader(
        "hqq",
        "HQQ, and transformers for it",
        (Syntax.TAG,),
        "dropbox/hqq, hqq/models/base.py, name_to_linear_tag",
    ),
    Reader(
        "quanto-map",
        "optimum-quanto, quanto_qmap.json",
        (Syntax.EXACT,),
        "huggingface/optimum-quanto, optimum/quanto/quantize.py, requantize",
    ),
    Reader(
        "quanto",
        "optimum-quanto, include and exclude",
        (Syntax.FNMATCH,),
        "huggingface/optimum-quanto, optimum/quanto/quantize.py, quantize",
    ),
    Reader(
        "autoround",
        "AutoRound, extra_config",
        (Syntax.EXACT, Syntax.RE_SEARCH),
        "intel/auto-round, auto_round/inference/convert_model.py",
        exact_wins=True,
    ),
    Reader(
        "autoround-skip",
        "AutoRound, lists of GPTQ and AWQ",
        (Syntax.RE_SEARCH,),
        "intel/auto-round, auto_round/inference/convert_model.py",
    ),
    Reader(
        "autoround-blocks",
        "AutoRound, block_name_to_quantize",
        (Syntax.PREFIX,),
        "intel/auto-round, auto_round/inference/convert_model.py",
    ),
    Reader(
        "quark",
        "Quark",
        (Syntax.FNMATCH,),
        "amd/Quark, quark/torch/quantization/config/config.py, exclude",
    ),
    Reader(
        "exllamav3",
        "ExLlamaV3, tensor_storage",
        (Syntax.EXACT,),
        "turboderp-org/exllamav3, exllamav3/loader/safetensors.py",
    ),
    Reader(
        "gemma",
        "transformers for Gemma",
        (Syntax.RE_SEARCH,),
        "huggingface/transformers, quantizers/quantizer_gemma.py",
        first_wins=True,
    ),
)
READERS: Final = {reader.id: reader for reader in _ALL}
"""Every reader by its id."""

READ_BY: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("mlx", "quantization"): ("mlx",),
    ("metal", "modules_to_not_convert"): ("transformers",),
    ("gptq", "dynamic"): ("gptq-dynamic",),
    ("gptq", "modules_in_block_to_quantize"): (
        *("vllm-gptq", "optimum", "autoround-skip"),
    ),
    ("awq", "modules_to_not_convert"): (
        *("vllm-awq", "autoawq", "transformers", "autoround-skip"),
    ),
    ("compressed-tensors", "ignore"): (
        *("compressed-tensors", "vllm-compressed-tensors"),
    ),
    ("compressed-tensors", "targets"): (
        *("compressed-tensors", "vllm-compressed-tensors"),
    ),
    ("fp8", "modules_to_not_convert"): ("transformers", "vllm-fp8"),
    ("fp8", "ignored_layers"): ("vllm-fp8", "transformers"),
    ("fp8", "modules_to_convert"): ("transformers-embeddings",),
    ("modelopt", "exclude_modules"): ("modelopt", "vllm-modelopt"),
    ("modelopt", "ignore"): ("modelopt", "vllm-modelopt"),
    ("mxfp4", "modules_to_not_convert"): ("transformers",),
    ("bitsandbytes", "llm_int8_skip_modules"): ("transformers", "vllm-bitsandbytes"),
    ("torchao", "quant_type"): ("torchao",),
    ("torchao", "modules_to_not_convert"): ("transformers",),
    ("hqq", "skip_modules"): ("hqq",),
    ("hqq", "quant_config"): ("hqq",),
    ("quanto", "modules_to_not_convert"): ("transformers",),
    ("quanto", "quanto_qmap"): ("quanto-map",),
    ("quanto", "include"): ("quanto",),
    ("quanto", "exclude"): ("quanto",),
    ("auto-round", "extra_config"): ("autoround",),
    ("auto-round", "block_name_to_quantize"): ("autoround-blocks",),
    ("quark", "exclude"): ("quark",),
    ("quark", "layer_quant_config"): ("quark",),
    ("exl3", "tensor_storage"): ("exllamav3",),
    ("gemma", "module_quant_configs"): ("gemma",),
    ("gemma", "modules_to_not_convert"): ("transformers",),
}
"""Ids of the readers by format and key: first whose meaning is used here, then the
others that read the same texts. quanto's `include` and `exclude` are arguments, and
stand in no file."""


def read_by(dialect: str, key: str) -> tuple[str, tuple[str, ...]]:
    """Name the reader of a list whose meaning is used, and the others.

    Raises:
        KeyError: it is not known who reads the list.

    """
    first, *others = READ_BY[dialect, key]
    return first, tuple(others)
