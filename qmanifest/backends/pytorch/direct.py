"""When a product may be computed at once, without torch's operator.

Calling an operator written in Python costs up to 0.4 ms where the code of the
dispatcher is not in the cache, which is as long as a product of one input. It is only
needed for who watches: gradients, tracing, transforms, and other kinds of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torch import (
    _C,
    Tensor,
    is_autocast_enabled,
    is_grad_enabled,
)
from torch.autograd import forward_ad
from torch.compiler import is_compiling
from torch.nn import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable

_KINDS: Final = (Tensor, Parameter)
# What torch has no public names for; found once, as every look-up may miss the cache.
_dispatch_modes: Final = _C._len_torch_dispatch_stack  # noqa: SLF001
_function_modes: Final = _C._len_torch_function_stack  # noqa: SLF001
_tracing: Final = _C._get_tracing_state  # noqa: SLF001
_transform: Final = _C._functorch.peek_interpreter_stack  # noqa: SLF001


def is_unwatched(x: Tensor, parts: Iterable[Tensor]) -> bool:
    """Tell whether nobody but the caller learns of a product of `x`."""
    if is_compiling() or _is_traced() or is_autocast_enabled("cpu"):
        return False
    recorded = is_grad_enabled()
    for each in (x, *parts):
        if type(each) not in _KINDS or not each.is_cpu:
            return False
        if recorded and each.requires_grad:
            return False
    return True


def _is_traced() -> bool:
    """Tell whether tracing, a transform or a mode is on."""
    return bool(
        _dispatch_modes()
        or _function_modes()
        or _tracing() is not None
        or _transform() is not None
        or forward_ad._current_level >= 0  # noqa: SLF001
    )
