"""Print docs/math.md: `python -m nanoloom.vector.math > docs/math.md`."""

from __future__ import annotations

from nanoloom.vector.math.table import document

print(document(), end="")
