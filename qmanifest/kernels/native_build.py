# ruff: noqa: ARG001 - a numba intrinsic is given the types of all its arguments
"""Kernels by numba whose code needs no numba to run: see `native`.

Such a kernel takes pointers and numbers, allocates nothing and raises nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from numba import njit, types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array

from qmanifest.kernels.jit import emitted
from qmanifest.kernels.native import ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Kind: TypeAlias = Any
"""numba has no types."""


@emitted
def as_array(_: Kind, pointer: Kind, shape: Kind) -> Kind:
    """See memory as an array, in the order of C; `shape` is a tuple of integers."""
    array = types.Array(pointer.dtype, len(shape), "C")

    def emit(context: Kind, builder: Kind, signature: Kind, given: Kind) -> Kind:
        made = make_array(array)(context, builder)  # type: ignore[no-untyped-call]
        item = context.get_constant(
            types.intp, context.get_abi_sizeof(context.get_data_type(pointer.dtype))
        )
        sides = cgutils.unpack_tuple(builder, given[1])  # type: ignore[no-untyped-call]
        strides = [item]
        for side in reversed(sides[1:]):
            strides.insert(0, builder.mul(strides[0], side))
        populate_array(  # type: ignore[no-untyped-call]
            made,
            data=given[0],
            shape=sides,
            strides=strides,
            itemsize=item,
            meminfo=None,
        )
        return made._getvalue()  # noqa: SLF001 - as numba's own functions end

    return array(pointer, shape), emit


def module_of(function: Callable[..., int], arguments: Sequence[Kind]) -> str:
    """Compile a function of pointers and numbers, and give its optimized LLVM module.

    Args:
        function: returns 0 or 1.
        arguments: numba's types of its arguments.

    """
    options: Kind = {
        "error_model": "numpy",
        "_nrt": False,  # no reference counts: they are functions of numba
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }
    compiled: Kind = njit(types.int64(*arguments), **options)(function)
    (result,) = compiled.overloads.values()
    module: str = result.library.get_llvm_str()
    return module.replace(result.fndesc.llvm_func_name, ENTRY)
