"""A session of a model that is compiled when sizes come.

Two programs are compiled: one for prompts of any length, one for a single token.  Where
a model does not only put new rows behind old ones, `reason` says so, and its outputs
become the next call's inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nanoloom.api.open_program import OpenProgram
from nanoloom.api.sessions.session import Array, Bound, Once, Session, Shapes
from nanoloom.api.sessions.state_pairs import chooser_of, pairs_of, stays_of, with_sums
from nanoloom.errors import InputError
from nanoloom.interface.dimension_values import bound_dims
from nanoloom.interface.interface import Interface
from nanoloom.interface.stacked_names import parts_of

if TYPE_CHECKING:
    from nanoloom.binary.assemble import Compiled

Pairs: TypeAlias = Mapping[str, str] | None  # inputs, and outputs that extend them
Numbers: TypeAlias = tuple[tuple[str, int], ...]  # of dimensions


class CompiledSession(Session):
    """What `Program.session` gives."""

    def __init__(
        self,
        program: OpenProgram,
        outputs: Sequence[Interface],
        threads: int,
        whole: Callable[[Mapping[str, object]], dict[str, Array]],
        capacity: int = 0,
        pairs: Pairs = None,
        once: Once = None,
    ) -> None:
        """whole: runs the model as it is.

        Raises InputError for a model without such inputs, or pairs that are none.
        """
        self.chooser = chooser_of(program.inputs)
        inputs = [x for x in program.inputs if x is not self.chooser]
        kept = pairs_of(program.inputs, outputs, pairs)
        own = program.known, program.bounds, capacity, once
        super().__init__(inputs, kept, *own, stays_of(program.inputs, outputs))
        self.program, self.threads, self.whole = program, threads, whole
        self.inputs = with_sums(inputs, outputs, kept)
        self._programs: dict[tuple[bool, Numbers], OpenProgram] = {}
        self._last: tuple[Shapes, Bound] | None = None

    def _bound(self, shapes: Shapes) -> Bound | None:
        if self._last is not None and self._last[0] == shapes:
            return self._last[1]
        chosen = self._program(shapes)
        loaded = chosen.variant(self.threads)
        if loaded is None:
            self.reason = chosen.reason
            return None
        dims = chosen.numbers(shapes)
        if dims is None:
            raise InputError("an axis of an input is not what the others make it")
        variant = loaded.bound(dims)
        made = variant.library, variant.instance
        self._last = shapes, made
        return made

    def _program(self, shapes: Shapes) -> OpenProgram:
        """The program for tokens of any number, or for one of known batch."""
        numbers = self._opened(()).numbers(shapes) or {}
        fixed = {d: n for d, n in numbers.items() if d not in self.lengths}
        batch = {d for x in self.kept for d in x.past.shape}
        stays = [x for x in self.given if x.name in self.once]
        others = {str(d) for x in stays for d in x.shape} - batch
        fixed = {d: n for d, n in fixed.items() if d not in others}
        single = all(n == 1 for d, n in fixed.items() if d not in batch)
        own = single and not self._starts
        return self._opened(tuple(sorted(fixed.items())) if own else ())

    @property
    def _starts(self) -> bool:
        """Whether the model has a branch for the first tokens, and these are they."""
        return self.chooser is not None and self.length == 0

    @property
    def _empty(self) -> set[str]:
        """Dimensions that are 0 where nothing is kept: those of nothing else."""
        given = {d for x in self.given if x.name not in self.unmoved for d in x.shape}
        stays = {d for x in self.given if x.name in self.unmoved for d in x.shape}
        return self.lengths | {d for d in stays - given if isinstance(d, str)}

    def _opened(self, known: Numbers) -> OpenProgram:
        """The program for numbers of some dimensions, and for all sizes of others.

        That of the first tokens is another, if the model has a branch for them.
        """
        program, chosen = self.program, self._chosen()
        starts = self._starts
        none = dict.fromkeys(self._empty, 0) if starts else {}
        if (starts, known) not in self._programs:
            self._programs[starts, known] = OpenProgram(
                self.inputs,
                bound_dims(self.inputs, {**program.known, **dict(known), **none}),
                program.source,
                replace(
                    program.options,
                    caches=tuple(self.pairs.items()),
                    starts=starts,
                    encoder_caches=tuple(self.unmoved.items()),
                ),
                program.cache,
                program.report,
                program.bounds,
                chosen,
            )
        return self._programs[starts, known]

    def _chosen(self) -> dict[str, Array]:
        """The input that says whether something is kept, if the model has one."""
        x = self.chooser
        if x is None:
            return {}
        return {x.name: np.full(x.shape, self.length > 0)}  # type: ignore[arg-type] - ones

    def compiled(self) -> Compiled:
        """The program for tokens of any number, to be written to a library.

        Raises InputError where it cannot append.
        """
        from nanoloom.binary.session_table import session_table

        if self.chooser is not None:
            reason = f"{self.chooser.name} has one branch for the first tokens"
            hint = "save the model without that branch, or compile without a session"
            raise InputError(reason, hint=hint)
        if numbers := self.lengths & self.program.known.keys():
            name = min(numbers)
            reason = f"dimension {name} is how much is kept, and has a number"
            raise InputError(reason, hint=f"give a bound: --dim {name}=..512, or none")
        chosen = self._opened(())
        made = chosen.to_link(self.lengths)
        if made is None:
            reason = f"what is kept between runs cannot grow in place: {chosen.reason}"
            raise InputError(reason, hint="compile it without a session")
        sides = made.table.inputs, made.table.outputs
        names = [[x.name for x in side] for side in sides]
        pairs = [
            pair
            for whole in self.pairs.items()
            for pair in zip(*map(parts_of, whole, names), strict=True)
        ]
        table = session_table(made.table, pairs, self.lengths)
        return replace(made, table=table)

    def _copied(self, arrays: Mapping[str, Array], shapes: Shapes) -> dict[str, Array]:
        """Call the program as it is; its outputs are kept."""
        inputs = (*(x.past for x in self.kept), *self.given)
        none = {
            x.name: np.zeros(shapes[x.name], x.dtype)
            for x in inputs
            if x.name not in arrays
        }
        given = {**arrays, **none, **self.past(), **self._chosen()}
        shapes = {name: x.shape for name, x in given.items()}
        given = {name: np.ascontiguousarray(x) for name, x in given.items()}
        sized = self.program.bound(shapes, self.threads, empty=self._empty)
        made = self.whole(given) if sized is None else sized(given)
        self._require_room(made[self.kept[0].present].shape[self.kept[0].axis])
        for x in self.kept:
            self._rows[x.present] = np.moveaxis(made.pop(x.present), x.axis, 0)
            self.length = len(self._rows[x.present])
        return made
