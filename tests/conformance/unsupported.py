"""The list of node tests that are refused, each with the reason: unsupported.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("unsupported.json")


@cache
def unsupported() -> dict[str, str]:
    """Reasons by the names of the cases."""
    return json.loads(FILE.read_text("utf-8"))


def write(reasons: Mapping[str, str]) -> None:
    """Write the list, in the order of names."""
    text = json.dumps(dict(sorted(reasons.items())), indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", "utf-8")
    unsupported.cache_clear()
