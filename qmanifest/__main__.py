"""Run the command line as `python -m qmanifest`."""

from __future__ import annotations

import sys

from qmanifest.cli import main

if __name__ == "__main__":
    sys.exit(main())
