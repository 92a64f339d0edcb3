"""Whole checkpoints: a 16-bit one packed under a config, a packed one unpacked."""
