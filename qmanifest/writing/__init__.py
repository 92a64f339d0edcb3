"""New checkpoints: quantize, lay out in shards, write whole or not at all."""
