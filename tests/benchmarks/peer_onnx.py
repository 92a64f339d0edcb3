"""ONNX Runtime's `MatMulNBits` as a peer.

The model is one node, so its protobuf is written here, field by field, and the onnx
package is not needed. Field numbers are those of `onnx.proto`.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto and, for the operator,
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import onnxruntime as ort

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.packings.arrays import AnyArray, Float32

_FLOAT, _UINT8 = 1, 2
_INT_ATTRIBUTE: Final = 2
_VARINT, _BYTES = 0, 2
_SEVEN_BITS: Final = 0x7F


def _varint(value: int) -> bytes:
    """Write an integer seven bits at a time, the least first."""
    octets = bytearray()
    while value > _SEVEN_BITS:
        octets.append(value & _SEVEN_BITS | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def _field(number: int, value: int | str | bytes) -> bytes:
    """Write one field of a message."""
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _attribute(name: str, value: int) -> bytes:
    """Write an AttributeProto."""
    return _field(1, name) + _field(3, value) + _field(20, _INT_ATTRIBUTE)


def _tensor(name: str, kind: int, array: AnyArray) -> bytes:
    """Write a TensorProto."""
    sides = b"".join(_field(1, side) for side in array.shape)
    return sides + _field(2, kind) + _field(8, name) + _field(9, array.tobytes())


def _value(name: str, shape: tuple[int, int]) -> bytes:
    """Write a ValueInfoProto of float32."""
    sides = b"".join(_field(1, _field(1, side)) for side in shape)
    tensor = _field(1, _FLOAT) + _field(2, sides)
    return _field(1, name) + _field(2, _field(1, tensor))


def _model(
    codes: AnyArray,
    scales: Float32,
    *,
    rows: int,
    shape: tuple[int, int],
    bits: int,
    accuracy: int,
) -> bytes:
    """Write a ModelProto with one MatMulNBits, for `rows` rows of input."""
    out_features, in_features = shape
    group_size = in_features // scales.shape[1]
    numbers = {
        "K": in_features,
        "N": out_features,
        "bits": bits,
        "block_size": group_size,
        "accuracy_level": accuracy,
    }
    node = b"".join(_field(1, name) for name in ("x", "codes", "scales"))
    node += _field(2, "y") + _field(4, "MatMulNBits") + _field(7, "com.microsoft")
    node += b"".join(_field(5, _attribute(*each)) for each in numbers.items())
    graph = _field(1, node) + _field(2, "product")
    graph += _field(5, _tensor("codes", _UINT8, codes))
    graph += _field(5, _tensor("scales", _FLOAT, scales))
    graph += _field(11, _value("x", (rows, in_features)))
    graph += _field(12, _value("y", (rows, out_features)))
    opsets = _field(8, _field(2, 21))
    opsets += _field(8, _field(1, "com.microsoft") + _field(2, 1))
    return _field(1, 10) + _field(7, graph) + opsets


def symmetric(weight: Float32, bits: int, group_size: int) -> tuple[AnyArray, Float32]:
    """Quantize to `scale * (code - 2**(bits - 1))`, the operator's own default.

    Returns:
        codes uint8 and scales float32, `(out_features, groups, group_size)` and
        `(out_features, groups)`.

    """
    groups = weight.reshape(weight.shape[0], -1, group_size)
    middle = 1 << bits - 1
    scales = np.abs(groups).max(axis=-1) / np.float32(middle - 1)
    codes = np.rint(groups / scales[..., None]) + middle
    return codes.astype(np.uint8), scales


def rebuilt(codes: AnyArray, scales: Float32, bits: int) -> Float32:
    """Rebuild the weight that `symmetric` made codes of."""
    middle = np.float32(1 << bits - 1)
    weight = (codes.astype(np.float32) - middle) * scales[..., None]
    return np.asarray(weight.reshape(len(weight), -1))


def multiplier(
    codes: AnyArray,
    scales: Float32,
    rows: int,
    bits: int,
    *,
    threads: int,
    accuracy: int = 1,
) -> Callable[[Float32], Float32]:
    """Make a function that multiplies `x @ weight.T`.

    Args:
        codes: of `symmetric`.
        scales: likewise.
        rows: how many rows `x` has.
        bits: 4 or 8.
        threads: that a product may use.
        accuracy: 1 computes in float32, 4 with activations of 8 bits.

    """
    out_features, groups, group_size = codes.shape
    low_first = codes[..., 0::2] | codes[..., 1::2] << 4 if bits == 4 else codes
    shape = (out_features, groups * group_size)
    model = _model(
        low_first, scales, rows=rows, shape=shape, bits=bits, accuracy=accuracy
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def multiply(x: Float32) -> Float32:
        (product,) = session.run(["y"], {"x": x})
        return np.asarray(product)

    return multiply
