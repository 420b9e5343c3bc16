"""A model whose named dimensions are sizes: compiled once, bound to their numbers.

Where a model cannot be compiled so, `reason` says why, and each set of shapes is a
variant of its own (program.py).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from nanoloom.api.remembered_refusals import remember, remembered
from nanoloom.cache import Cache
from nanoloom.dynamic.dynamic_refusal import (
    NotDynamic,
    Others,
    not_told_apart,
    with_dims,
)
from nanoloom.dynamic.polynomial import Size
from nanoloom.dynamic.samples import Samples, are_of_images, tried_samples
from nanoloom.dynamic.size_limits import limits_of
from nanoloom.errors import (
    DataDependent,
    Error,
    InputError,
    InternalError,
    ModelError,
    ModelWarning,
    Unsupported,
)
from nanoloom.graph.data_dependent.rooms import Unbounded
from nanoloom.interface.bounds import NO_BOUNDS, Bounds
from nanoloom.interface.expressions import evaluate, names
from nanoloom.interface.interface import Interface
from nanoloom.interface.room_names import are_by_sizes, rooms_among
from nanoloom.model.binding import OpenBinding
from nanoloom.model.source import Entering, Source
from nanoloom.options import CompileOptions
from nanoloom.report import Report

if TYPE_CHECKING:
    from nanoloom.binary.assemble import Compiled
    from nanoloom.dynamic.sample_walk import Walked
    from nanoloom.runtime.variant import Variant

Made = TypeVar("Made")
Shapes = Mapping[str, tuple[int, ...]]
Array: TypeAlias = np.ndarray
# Options that programs for all sizes have as well.
KEPT = (
    "checked", "exact_conv", "caches", "starts", "encoder_caches", "any_value",
)  # fmt: skip
NO_VALUES: Mapping[str, Array] = MappingProxyType({})


class OpenProgram:
    """A program for all sizes of the dimensions that have no number yet.

    names: of these dimensions, in the order of the inputs.
    """

    def __init__(
        self,
        inputs: Sequence[Interface],
        known: Mapping[str, int],
        source: Source,
        options: CompileOptions,
        cache: Cache,
        report: Report,
        bounds: Mapping[str, Bounds] = NO_BOUNDS,
        values: Mapping[str, Array] = NO_VALUES,
    ) -> None:
        """known: numbers of dimensions.  bounds: of those without a number.

        values: of inputs that are none of `inputs`, and constants here.
        """
        self.inputs, self.known, self.bounds = inputs, known, bounds
        self.values = values
        self.source, self.options = source, options
        self.cache, self.report = cache, report
        texts = [d for x in inputs for d in x.shape if isinstance(d, str)]
        self.texts = tuple(dict.fromkeys(d for d in texts if d not in known))
        found = [name for text in self.texts for name in sorted(names_in(text))]
        self.names = tuple(dict.fromkeys(n for n in found if n not in known))
        self.reason = self.excluded()
        self._loading = threading.Lock()
        self._variant: Variant | None = None

    def excluded(self) -> str:
        """Why sizes are not tried; "" where they are."""
        if not self.names:
            return "no dimension is open"
        if lost := [name for name in self.names if name not in self.texts]:
            text = next(t for t in self.texts if {*lost} & names_in(t))
            what = f"dimension {text} is an expression"
            return str(with_dims(NotDynamic(f"{what} of what no input has"), lost))
        options = self.options
        kept = {name: getattr(options, name) for name in KEPT}
        usual = CompileOptions(options.target, options.precision, **kept)
        if options != usual:
            reason = "its kernels are scheduled for known sizes"
            return str(with_dims(NotDynamic(reason), self.names))
        if isinstance(self.source, Entering):
            return "it is no graph"
        return "" if self.samples else not_told_apart(self.names)

    @cached_property
    def samples(self) -> tuple[Samples, ...]:
        floats = {x.dtype.kind for x in self.inputs}.isdisjoint("iu")
        rooms = rooms_among([x.name for x in self.inputs])
        shapes = [x.shape for x in self.inputs]
        tried = tried_samples(shapes, self.names, floats=floats)
        # Sizes alone decide about those of an image that is made larger or smaller.
        images = tuple(each for each in tried if are_of_images(each))
        return images if rooms and are_by_sizes(rooms) and images else tried

    def bound(
        self, shapes: Shapes, threads: int, *, empty: Set[str] = frozenset()
    ) -> Variant | None:
        """The program for the sizes that inputs of these shapes have.

        empty: dimensions that may be 0; ONNX says much that is special of nothing.
        None where it is not compiled so, or these sizes are outside of what it takes.
        """
        if self.reason:
            return None
        self.source.conditions.require(shapes)
        dims = self.numbers(shapes)
        if dims is None or any(not n and d not in empty for d, n in dims.items()):
            return None
        variant = self.variant(threads)
        try:
            return None if variant is None else variant.bound(dims)
        except Error:  # beyond a limit: its own variant says what is wrong, or right
            return None

    def numbers(self, shapes: Shapes) -> dict[str, int] | None:
        """The dimensions by shapes; None where an expression of them is not right."""
        rows = [zip(x.shape, shapes[x.name], strict=True) for x in self.inputs]
        found = {str(d): number for row in rows for d, number in row if d in self.texts}
        dims = {name: found[name] for name in self.names if name in found}
        given = {**self.known, **dims}
        right = all(evaluate(text, given) == number for text, number in found.items())
        return dims if right else None

    def variant(self, threads: int) -> Variant | None:
        """The program, compiled if it is not yet; None where it cannot be."""
        with self._loading:
            if self._variant is None and not self.reason:
                empty = {*self.names}  # any: who calls it looks at that before
                self._variant = self._first(lambda b: b.loaded(threads), empty)
            return self._variant

    @property
    def loaded(self) -> tuple[Variant, ...]:
        """The program, where it is in memory."""
        return (self._variant,) if self._variant else ()

    def compiled(self, why: str) -> Compiled:
        """The program, to be written to a file.

        Raises InputError where it cannot be for all sizes.  why: it is wanted.
        """
        if (made := self.to_link()) is None:
            how = " ".join(f"--dim {name}=N" for name in self.names)
            reason = f"no number is given for dimension {', '.join(self.names)}, and"
            hint = "" if "--dim" in self.reason else f"bind it: {how}"
            raise InputError(f"{reason} {why}: {self.reason}", hint=hint)
        if unasked := self.limits[1]:
            told = f"is right only where {unasked[0]}, which a file does not ask"
            warnings.warn(told, ModelWarning, stacklevel=2)
        return made

    def to_link(self, empty: Set[str] = frozenset()) -> Compiled | None:
        """The program, to be written to a file; None where it cannot be.

        empty: dimensions that may be 0.
        """
        if self.reason:
            return None
        return self._first(OpenBinding.to_link, empty)

    def decided(self) -> Samples:
        """The samples that stand for all sizes; () where each is compiled on its own.

        `reason` says why then.  Nothing is compiled for it.
        """

        def cut(binding: OpenBinding) -> Samples:
            binding.require(self.report)
            return binding.samples

        return () if self.reason else self._first(cut, frozenset()) or ()

    def _first(
        self, made: Callable[[OpenBinding], Made], empty: Set[str]
    ) -> Made | None:
        """What is made of the first samples that the model takes; else the reason.

        empty: dimensions that may be 0.  Raises Unbounded where rooms would do.
        """
        others, wanted = Others.ANY, None
        walked: Walked = {}
        for samples in self.samples:
            if others is Others.OF_IMAGES and not are_of_images(samples):
                continue
            binding = self.binding(samples, empty, walked)
            if (known := remembered(self.cache, binding.name)) is not None:
                others, said = known
                self.reason = said or self.reason
            else:
                try:
                    found = made(binding)
                except Unbounded:
                    raise  # who has room makes another program
                except (NotDynamic, InputError, ModelError, Unsupported) as reason:
                    others = self._refused(binding.name, reason)
                    wanted = wanted or getattr(reason, "wanted", None)
                except Exception as bug:  # whatever it is: variants may do
                    if isinstance(bug, Error) and not isinstance(bug, InternalError):
                        raise
                    return self._broken(bug)
                else:
                    self.reason = ""
                    return found
            if not others:
                break
        return self._given_up(wanted)

    def _given_up(self, wanted: DataDependent | None) -> None:
        """Have a reason; raises what would do instead."""
        self.reason = self.reason or not_told_apart(self.names)
        if wanted is not None:
            raise wanted

    def _broken(self, bug: Exception) -> None:
        """Let each size be compiled on its own for a bug."""
        self.reason = f"a bug of nanoloom ({type(bug).__name__}: {bug})"
        message = f"each size is compiled on its own: {self.reason}; report it"
        warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _refused(self, name: str, reason: Exception) -> Others:
        """Note why samples do not do, also by this name; which others may."""
        is_known = isinstance(reason, NotDynamic)
        # Numbers of samples are too large for a model: that is no reason.
        said = str(reason) if is_known else self.reason or str(reason)
        self.reason = said or self.reason
        others = reason.others if is_known else Others.ANY
        remember(self.cache, name, others, self.reason)
        return others

    def binding(self, samples: Samples, empty: Set[str], walked: Walked) -> OpenBinding:
        free = Bounds(or_none=not empty)
        given = {name: self.bounds.get(name, free) for name in self.names}
        bounds = {
            name: replace(b, least=0, or_none=False) if name in empty else b
            for name, b in given.items()
        }
        return OpenBinding(
            self.source,
            self.options,
            self.cache,
            self.report,
            self.shapes(samples[0]),
            self.values,
            samples,
            self.shapes,
            bounds,
            [[self.known.get(str(d), d) for d in x.shape] for x in self.inputs],
            self.limits[0],
            walked,
        )

    @cached_property
    def limits(self) -> tuple[tuple[Size, ...], tuple[str, ...]]:
        """Sizes that may not be below 0, and what no file asks, as the model says."""
        return limits_of(self.source.conditions, self.inputs, self.known)

    def shapes(self, dims: Mapping[str, int]) -> Shapes:
        """Of the inputs, for numbers of the open dimensions."""
        given = {**self.known, **dims}
        known = given | {text: evaluate(text, given) or 0 for text in self.texts}
        return {
            x.name: tuple(d if isinstance(d, int) else known[d] for d in x.shape)
            for x in self.inputs
        }


def names_in(text: str) -> set[str]:
    """The dimensions in one that may be an expression of others."""
    return names(text) or {text}
