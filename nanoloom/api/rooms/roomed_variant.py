"""Programs with rooms that are compiled here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nanoloom.model.binding import deciding
from nanoloom.runtime.roomed import Roomed, Rooms
from nanoloom.runtime.variant import Variant

Array = np.ndarray
OfValues = Callable[[Mapping[str, Array]], Variant]  # by inputs that decide shapes


class RoomedVariant(Roomed, Variant):
    """One for shapes of its inputs, which runs until there is room.

    bind: the program for numbers of its rooms, None where there is none; of_values: for
    values of inputs, which is then made.
    """

    def __init__(
        self,
        rooms: Sequence[str],
        bind: Callable[[Rooms], Variant | None],
        first: Variant,
        of_values: OfValues,
    ) -> None:
        def otherwise(
            inputs: Mapping[str, Array], nanoseconds: Array | None
        ) -> dict[str, Array]:
            return deciding(inputs, (), of_values)[0](inputs, nanoseconds)

        self.name, self._block = f"{first.name} {rooms}", None
        super().__init__(rooms, bind, first, otherwise)
