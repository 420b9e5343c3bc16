"""python -m nanoloom, and the command `nanoloom`."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # as nanoloom/cli/failures.py says it, which is not loaded yet


def main() -> int:
    """The status of the command; loading it may be interrupted, too."""
    try:
        from nanoloom.cli.main import main as command
    except KeyboardInterrupt:
        return INTERRUPTED
    return command()


if __name__ == "__main__":
    sys.exit(main())
