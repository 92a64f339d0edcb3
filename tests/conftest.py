"""Settings of every test: how hard hypothesis tries.

`HYPOTHESIS_PROFILE=fuzz` tries many more examples than a usual run. The usual run is
derandomized in CI, so that a build fails for what it changed and nothing else.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile(
    "default", deadline=None, max_examples=50, derandomize="CI" in os.environ
)
settings.register_profile("fuzz", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
