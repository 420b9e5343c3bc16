"""Whatever is asked for: torch is an extra, and its own types change with releases."""

from typing import Any

def __getattr__(name: str) -> Any: ...
