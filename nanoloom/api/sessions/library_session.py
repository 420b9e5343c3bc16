"""A session of a library that was saved with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nanoloom.api.sessions.session import Array, Bound, Session, Shapes
from nanoloom.api.sessions.state_pairs import of_parts, pairs_of
from nanoloom.errors import InputError
from nanoloom.interface.expressions import evaluate
from nanoloom.interface.interface import Interface
from nanoloom.interface.stacked_names import whole_of
from nanoloom.runtime.library import Instance, Library


class LoadedSession(Session):
    """What `Loaded.session` gives."""

    def __init__(
        self,
        library: Library,
        instance: Instance,
        require_open: Callable[[], None],
        inputs: Sequence[Interface],
        outputs: Sequence[Interface],
        capacity: int = 0,
    ) -> None:
        """instance: whose threads run it.  inputs, outputs: with names of sizes.

        require_open: raises Error where these threads have ended.
        """
        assert library.open is not None
        given, made = of_parts(inputs), of_parts(outputs)
        pairs = {whole_of(past): whole_of(y) for past, y in library.pairs.items()}
        kept = pairs_of(given, made, pairs)
        super().__init__(given, kept, {}, library.open.bounds, capacity)
        self.library, self.instance = library, instance
        self._require_open = require_open
        self._last: tuple[list[int], Bound] | None = None

    def _bound(self, shapes: Shapes) -> Bound | None:
        self._require_open()
        numbers = dict.fromkeys(self.lengths, self.length)
        found = [
            (str(d), number)
            for x in self.given
            for d, number in zip(x.shape, shapes[x.name], strict=True)
        ]
        numbers |= {d: n for d, n in found if d in self.library.dims}
        if any(evaluate(d, numbers) != number for d, number in found):
            raise InputError("an axis of an input is not what the others make it")
        sizes = [numbers[name] for name in self.library.dims]
        if self._last is None or self._last[0] != sizes:
            library = self.library.bound(sizes)
            self._last = sizes, (library, library.create(self.instance))
        return self._last[1]

    def _copied(self, arrays: Mapping[str, Array], shapes: Shapes) -> dict[str, Array]:
        raise AssertionError("what is saved with a session appends")
