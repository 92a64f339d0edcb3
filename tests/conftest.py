"""Settings of every test: how hard hypothesis tries.

A usual run is derandomized, so that it fails for what was changed and nothing else.
`HYPOTHESIS_PROFILE=fuzz` tries many more examples, and others each time.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
