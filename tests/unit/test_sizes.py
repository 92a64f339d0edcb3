"""Bytes of what is promised and of what is stored, against hand-made numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from qmanifest.dtypes import FLOAT, FLOAT16, nbytes
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.schemes import Affine, Microscaling, ZeroPoint
from qmanifest.sizes import GroupSize, Sizes, layer_of, sizes_of, stored_sizes
from qmanifest.tensors import Shape, TensorIndex, TensorInfo
from qmanifest.writing.shards import OutputTensor, plan_shards, planned_header_bytes

SEEDS = Path(__file__).parents[2].parent / "shared" / "seeds"
Q4 = Affine(4, 64, FLOAT16, "u32-lsb")
Q8 = Affine(8, 32, FLOAT16, "u32-lsb")


def single(*weights: Weight, kept: tuple[str, ...] = ()) -> Manifest:
    component = Component("", weights, tuple(Kept(name, "", FLOAT16) for name in kept))
    return Manifest("test", components=(component,))


def index_of(*tensors: tuple[str, str, Shape], file: str = "m") -> TensorIndex:
    infos, begin = [], 100
    for name, dtype, shape in tensors:
        end = begin + nbytes(dtype, shape)
        infos.append(TensorInfo(name, dtype, shape, begin, end, file))
        begin = end
    return TensorIndex(infos)


def seed() -> Manifest:
    path = SEEDS / "tensor_map.quant_config.json"
    if not path.exists():
        pytest.skip("the seed configs are not here")
    config = json.loads(path.read_bytes())
    weights = tuple(
        Weight(
            name,
            Affine(entry["bits"], entry["group_size"], FLOAT16, "u32-lsb"),
            "",
            tuple(entry["shape"]),
        )
        for name, entry in config["tensors"].items()
    )
    return single(*weights, kept=tuple(config["kept_16bit"]))


def test_facts_of_the_seed() -> None:
    sizes = sizes_of(seed())
    assert len(sizes.rows) == 3 * 112
    assert sizes.quantized_parameters == 1_916_772_352
    assert sizes.total == 2_156_368_896
    assert sizes.bits_per_weight == 9
    assert sizes.as_16bit == 2 * 1_916_772_352
    assert sizes.bits_per_weight_all is None
    assert sizes.assumed == ()
    kept, unnamed = sizes.unknown
    assert kept.startswith("Not counted, because no shape is known: 210 kept tensors (")
    assert unnamed.endswith(": tensors that the config does not name")


def test_layers_of_the_seed_are_in_natural_order() -> None:
    labels = [group.label for group in sizes_of(seed()).group("layer")]
    layers = [f"layers.{number}" for number in range(28)]
    assert labels == ["embed_tokens", *layers, "table"]


def test_affine_weight_by_hand() -> None:
    sizes = sizes_of(single(Weight("a.weight", Q4, "", (3, 128))))
    assert (sizes.codes, sizes.scales, sizes.biases) == (192, 12, 12)
    assert (sizes.other, sizes.kept, sizes.overhead) == (0, 0, 0)
    assert sizes.total == 216
    assert sizes.parameters == sizes.quantized_parameters == 384
    assert sizes.bits_per_weight == Fraction(9, 2)


@pytest.mark.parametrize(
    ("scheme", "bits"),
    [
        (Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"), Fraction(17, 4)),
        (Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"), Fraction(33, 4)),
        (Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"), Fraction(9, 2)),
        (Affine(3, 128, FLOAT16, "u32-lsb"), Fraction(13, 4)),
        (ZeroPoint(4, 64, FLOAT16, ("U8",), "u8-nibbles"), Fraction(35, 8)),
    ],
    ids=str,
)
def test_bits_per_weight_of_other_schemes(
    scheme: Microscaling | Affine | ZeroPoint, bits: Fraction
) -> None:
    sizes = sizes_of(single(Weight("a.weight", scheme, "", (2, 4, 128))))
    assert sizes.bits_per_weight == bits


def test_global_scales_and_zeros_are_other() -> None:
    nv = Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb")
    sizes = sizes_of(single(Weight("a.weight", nv, "", (2, 4, 32))))
    assert sizes.other == 8
    zero = ZeroPoint(4, 64, FLOAT16, ("U8",), "u32-lsb")
    assert sizes_of(single(Weight("a.weight", zero, "", (4, 64)))).other == 4


def test_shapes_of_the_16bit_model_fill_in() -> None:
    manifest = single(Weight("a.weight", Q4, ""), kept=("head.weight", "old.weight"))
    shapes: dict[str, tuple[str, Shape]] = {
        "a.weight": ("BF16", (2, 64)),
        "head.weight": ("BF16", (4, 8)),
        "old.weight": ("F32", (4, 8)),
        "norm.weight": ("F32", (8,)),
        "ids": ("I64", (1, 5)),
    }
    sizes = sizes_of(manifest, {"": shapes}, overhead=1000)
    assert [(row.tensor, row.dtype, row.nbytes) for row in sizes.rows] == [
        ("a.weight", "U32", 64),
        ("a.scales", "F16", 4),
        ("a.biases", "F16", 4),
        ("head.weight", "BF16", 64),
        ("old.weight", "F16", 64),
        ("norm.weight", "F32", 32),
        ("ids", "I64", 40),
    ]
    assert sizes.kept == 200
    assert sizes.total == 72 + 200 + 1000
    assert sizes.parameters == 128 + 32 + 32 + 8 + 5
    assert sizes.as_16bit == 2 * (128 + 32 + 32 + 8) + 40
    assert sizes.bits_per_weight == Fraction(8 * 72, 128)
    assert sizes.bits_per_weight_all == Fraction(8 * 272, 205)
    assert sizes.unknown == ()


def test_declared_shape_wins() -> None:
    manifest = single(Weight("a.weight", Q4, "", (2, 64)))
    sizes = sizes_of(manifest, {"": {"a.weight": ("BF16", (99, 64))}})
    assert sizes.parameters == 128


def test_tensor_kept_and_quantized_counts_once() -> None:
    manifest = single(Weight("a.weight", Q4, "", (2, 64)), kept=("a.weight",))
    sizes = sizes_of(manifest, {"": {"a.weight": ("BF16", (2, 64))}})
    assert (len(sizes.rows), sizes.unknown) == (3, ())


def test_what_is_not_counted_is_said() -> None:
    manifest = single(
        Weight("none.weight", Q4, ""),
        Weight("scalar.weight", Q4, ""),
        Weight("ragged.weight", Q4, "", (2, 65)),
        *(Weight(f"{number}.weight", Q4, "") for number in range(4)),
        kept=("a'b",),
    )
    sizes = sizes_of(manifest, {"": {"scalar.weight": ("F16", ())}})
    assert sizes == Sizes(
        (),
        unknown=(
            (
                "Not counted, because no shape is known: 6 quantized weights "
                "('none.weight', 'scalar.weight', '0.weight', ...)"
            ),
            (
                "Not counted, because a row is not a whole number of words: "
                "1 quantized weight ('ragged.weight')"
            ),
            """Not counted, because no shape is known: 1 kept tensor ("a'b")""",
        ),
    )
    assert sizes.bits_per_weight is None


def test_wider_scales_that_the_config_allows_are_said() -> None:
    sizes = sizes_of(
        single(Weight("a.weight", Affine(4, 64, FLOAT, "u32-lsb"), "", (2, 64)))
    )
    assert sizes.scales == 4
    (assumed,) = sizes.assumed
    assert "first of several dtypes" in assumed
    assert "1 quantized weight ('a.weight')" in assumed


def two_models() -> Manifest:
    return Manifest(
        "test",
        components=tuple(
            Component(name, (Weight("x.1.weight", Q4, ""),)) for name in ("emb", "rr")
        ),
    )


def test_components_have_their_own_shapes() -> None:
    sizes = sizes_of(two_models(), {"emb": {"x.1.weight": ("F16", (2, 64))}})
    assert {row.component for row in sizes.rows} == {"emb"}
    assert [sentence.partition(":")[0] for sentence in sizes.unknown] == ["rr", "rr"]
    assert sizes.group("layer") == (GroupSize("emb: x.1", 3, 128, 72),)


def test_groups() -> None:
    manifest = single(
        Weight("l.10.q.weight", Q4, "", (2, 64)),
        Weight("l.9.q.weight", Q8, "", (2, 64)),
    )
    shapes: dict[str, tuple[str, Shape]] = {"l.9.norm": ("F32", (64,))}
    sizes = sizes_of(manifest, {"": shapes})
    assert sizes.group("layer") == (
        GroupSize("l.9", 4, 192, 144 + 256),
        GroupSize("l.10", 3, 128, 72),
    )
    assert sizes.group("part") == (
        GroupSize("codes", 2, 256, 192),
        GroupSize("scales", 2, 0, 12),
        GroupSize("biases", 2, 0, 12),
        GroupSize("kept", 1, 64, 256),
    )
    assert sizes.group("bits") == (
        GroupSize("4-bit", 3, 128, 72),
        GroupSize("8-bit", 3, 128, 144),
        GroupSize("32-bit kept", 1, 64, 256),
    )
    assert [group.label for group in sizes.group("dtype")] == ["F16", "U32", "F32"]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("layers.3.self_attn.q_proj.weight", "layers.3"),
        ("encoder.layer.0.attention.self.key.weight", "encoder.layer.0"),
        ("groups.0.1.qkv.weight", "groups.0"),
        ("table.weight", "table"),
        ("0.weight", "0"),
        ("h²³.٣.4.x", "h²³.٣.4"),
        ("", ""),
    ],
)
def test_layer_of(name: str, layer: str) -> None:
    assert layer_of(name) == layer


TRIPLET: tuple[tuple[str, str, Shape], ...] = (
    ("a.weight", "U32", (4, 8)),
    ("a.scales", "BF16", (4, 1)),
    ("a.biases", "BF16", (4, 1)),
)


def test_stored_triplet_with_a_promise() -> None:
    component = Component("emb", (Weight("a.weight", Q4, ""),))
    sizes = stored_sizes(index_of(*TRIPLET, ("a.bias", "F16", (4,))), component)
    assert (sizes.codes, sizes.scales, sizes.biases, sizes.kept) == (128, 8, 8, 8)
    assert sizes.overhead == 100
    assert sizes.total == 252
    assert sizes.quantized_parameters == 256
    assert sizes.parameters == 260
    assert sizes.bits_per_weight == Fraction(9, 2)
    assert sizes.unknown == ()
    assert {row.component for row in sizes.rows} == {"emb"}
    assert {row.bits for row in sizes.rows if not row.kept} == {4}


def test_stored_triplet_without_a_promise_has_unknown_parameters() -> None:
    sizes = stored_sizes(index_of(*TRIPLET, ("n.weight", "F16", (4,))))
    assert (sizes.codes, sizes.scales, sizes.biases) == (128, 8, 8)
    assert sizes.parameters == 4
    assert sizes.bits_per_weight is None
    assert sizes.bits_per_weight_all is None
    assert sizes.unknown == (
        (
            "Parameters not counted, because nothing says the code width: "
            "1 packed tensor ('a.weight')"
        ),
    )
    assert sizes.group("bits")[0] == GroupSize("unknown", 3, 0, 144)


def test_bits_per_weight_leaves_out_weights_of_unknown_width() -> None:
    component = Component("", (Weight("a.weight", Q4, ""),))
    index = index_of(*TRIPLET, ("b.qweight", "I32", (4, 8)))
    sizes = stored_sizes(index, component)
    assert sizes.codes == 256
    assert sizes.bits_per_weight == Fraction(9, 2)


def test_declared_shape_counts_the_stored_parameters() -> None:
    component = Component("", (Weight("a.weight", Q4, "", (4, 60)),))
    assert stored_sizes(index_of(*TRIPLET), component).parameters == 240


def test_promised_quantized_but_stored_16bit_counts_as_stored() -> None:
    component = Component("", (Weight("a.weight", Q4, "", (4, 64)),))
    sizes = stored_sizes(index_of(("a.weight", "F16", (4, 64))), component)
    assert (sizes.kept, sizes.quantized_parameters) == (512, 0)


def test_nibbles_count_two_codes_a_byte() -> None:
    component = Component("", (Weight("a.weight", Q4, ""),))
    index = index_of(
        ("a.weight", "U8", (4, 32)),
        ("a.scales", "F16", (4, 1)),
        ("a.zeros", "U8", (4, 1)),
    )
    sizes = stored_sizes(index, component)
    assert (sizes.quantized_parameters, sizes.other) == (256, 4)


def test_integer_buffers_are_parameters_of_no_weight() -> None:
    sizes = stored_sizes(index_of(("ids", "I64", (1, 512)), ("n", "I32", ())))
    assert (sizes.kept, sizes.parameters, sizes.unknown) == (4100, 513, ())


def test_headers_count_once_per_file_and_repeats_count_in_total() -> None:
    first, second = (
        TensorInfo("a", "F16", (4,), begin, begin + 8, file)
        for file, begin in (("1", 64), ("2", 80))
    )
    third = TensorInfo("b", "F16", (4,), 72, 80, "1")
    sizes = stored_sizes(TensorIndex([third, first, second]))
    assert (sizes.overhead, sizes.repeated, sizes.kept) == (144, 8, 16)
    assert sizes.total == 168


def test_header_bytes_of_a_plan_complete_the_total() -> None:
    sizes = sizes_of(single(Weight("a.weight", Q4, "", (3, 128))), {"": {}})
    specs = [OutputTensor(row.tensor, row.dtype, row.shape) for row in sizes.rows]
    (plan,) = plan_shards(specs)
    header = planned_header_bytes(plan.tensors, {"format": "mlx"})
    more = sizes + Sizes((), overhead=header)
    assert more.total == plan.nbytes + header
