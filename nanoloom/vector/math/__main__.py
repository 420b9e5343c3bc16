"""Print docs/math.md: `python -m nanoloom.vector.math > docs/math.md`."""

from __future__ import annotations

from nanoloom.vector.math.page import document

print(document(), end="")
