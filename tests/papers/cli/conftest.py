"""The command as a user types it, as for the verbs of nanoloom's own."""

from __future__ import annotations

from tests.cli.conftest import cache, nanoloom

__all__ = ["cache", "nanoloom"]
