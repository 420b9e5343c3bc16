"""Where in a row of an image of any size a register tile may be.

Of an image whose border is left out (operands/unpadded_fma.py): what rows of a tile
read is within it, or some of them ask.
"""

from __future__ import annotations

from enum import Enum


class RowPosition(Enum):
    """What is known of a tile.  All but the last are of whole tiles."""

    WITHIN = "within the image"
    FIRST = "the first one, and nothing behind the image"
    LAST = "not in front of the image"
    ANYWHERE = "nothing"
