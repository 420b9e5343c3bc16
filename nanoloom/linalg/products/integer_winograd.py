"""Winograd's method on integers (winograd.py has it on floats): exact.

    V = B d B'      M[place] = V[place] @ U[place]      2^bits y = A M A' modulo 2^32

B has integers.  U = G g G' has if each row of G is multiplied by some number; A makes
up for what its place is then too large by (graph/winograd_transforms.py).  Sums wrap,
which leaves them exact modulo 2^32; 2^bits is shifted out, and y is left where it has
so many bits less than 32: graph/winograd.py sees to it, and to numbers of V and U that
fit in 16 bits.
"""

from __future__ import annotations

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor, changed
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.winograd import (
    Tables,
    Tiles,
    axes_of_window,
    image_of,
    table,
)
from nanoloom.linalg.products.winograd_filters import IntegerFilters, of_integers


def integer_winograd(
    b: Builder,
    x: Tensor,
    around: int,
    w: Tensor,
    window: Window,
    tile: int,
    groups: int = 1,
) -> Tensor:
    """Sums [n, result..., f] in int32 of x [n, sides..., c] of 8 bits with constant w.

    around: the number that stands in the padding.  w: [f, c / groups, taps...] of at
    most 9 bits.
    """
    axes = axes_of_window(window, tile)
    given = [of_integers(axis) for axis in axes]
    tables = [
        Tables(
            table(each.image, f"winograd{axis}.image.int16"),
            table(each.result, f"winograd{axis}.result.int32"),
        )
        for axis, each in zip(axes, given, strict=True)
    ]
    filters = changed(w, IntegerFilters(axes))
    whole = Tiles(b, window, axes, tables).convolved(x, filters, groups, around)
    bits = sum(each.bits for each in given)

    def shifted(sum_: Scalar) -> Scalar:
        return sum_ >> bits

    return image_of(b, b.elementwise(shifted, whole), window)
