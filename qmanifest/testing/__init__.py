"""Help for tests, shipped to users: checkpoints from a table, strategies.

`strategies` needs hypothesis, so it is imported by whoever has it; nothing here loads
numpy.
"""

from __future__ import annotations

from qmanifest.testing.tables import RawTensor, tensors_of, write_checkpoint, write_raw

__all__ = ["RawTensor", "tensors_of", "write_checkpoint", "write_raw"]
