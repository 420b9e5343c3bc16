"""What of a program depends on the names that its inputs' dimensions have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nanoloom.api.open_program import OpenProgram
from nanoloom.api.rooms.open_rooms import OpenRooms
from nanoloom.cache import Cache
from nanoloom.interface.bounds import parted
from nanoloom.interface.check_inputs import SeveralSizes, check_inputs
from nanoloom.interface.dimension_values import bound_dims, check_known
from nanoloom.model.joined_symbols import parted_by_sizes, with_other_names
from nanoloom.model.source import Source
from nanoloom.model.split_symbols import split_by_names
from nanoloom.options import CompileOptions
from nanoloom.report import Report
from nanoloom.runtime.variant import Variant

Array = np.ndarray


class NamedSizes:
    """A name may be several ones, or several names one, as arrays say.

    _last: for arrays of the shapes of the last call.
    """

    options: CompileOptions
    cache: Cache
    report: Report
    _last: Variant | None

    def _declare(self, source: Source, dims: Mapping[str, object]) -> None:
        """What depends on the names that dimensions have."""
        source = split_by_names(source, self.cache, dims)
        self._last = None
        self.source = source
        self.entries, self.outputs = source.interface(self.cache)
        self._texts, self.inputs = source.texts, source.texts.inputs
        self._has_texts, self._has_lists = bool(self._texts), False
        self.vocabulary = tuple(self._texts.strings)  # a saved program has places in it
        numbers, self.bounds = parted(dims)
        self.dims = bound_dims(self.entries, numbers)
        self.symbols = [d for x in self.entries for d in x.shape if isinstance(d, str)]
        check_known(self.symbols, self.bounds)
        own = self.entries, self.dims, source, self.options, self.cache, self.report
        self.open = OpenProgram(*own, self.bounds)
        self.roomed = OpenRooms(self.open)

    def checked(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """The arrays; a name that they give several sizes is several ones from now."""
        try:
            return check_inputs(self.entries, inputs, self.dims)
        except SeveralSizes:
            apart = parted_by_sizes(self.source, self.cache, inputs)
            self._declare(apart, self.dims | self.bounds)
        return self.checked(inputs)

    def other(self, shapes: Mapping[str, tuple[int, ...]]) -> Source | None:
        """The model with names for its dimensions that may be sizes, if its are not."""
        said = {*self.dims, *self.bounds}
        refused = self.open.names and self.open.reason
        if not refused:
            return None
        return with_other_names(self.source, self.cache, shapes, said)
