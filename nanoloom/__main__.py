"""python -m nanoloom"""

from __future__ import annotations

import sys

from nanoloom.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
