"""Whether open dimensions of a model are sizes at run time, as its program decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nanoloom.api.open_program import OpenProgram
from nanoloom.api.rooms.open_rooms import OpenRooms
from nanoloom.cache import Cache
from nanoloom.dynamic.samples import multiple_of
from nanoloom.errors import DataDependent, Error
from nanoloom.interface.dimension_values import bound_dims
from nanoloom.model.source import Source
from nanoloom.options import options_with
from nanoloom.report import Report

NOTHING = {"precision": None, "checked": None, "exact_conv": None}


@dataclass(frozen=True)
class DynamicSizes:
    """How sizes of open dimensions are compiled.

    why: each on its own; "" where they are compiled once.  multiple: of which heights
    and widths are; others are compiled on their own then.
    """

    why: str = ""
    multiple: int = 1


def dynamic_sizes(given: object, dims: Mapping[str, int], cache: Cache) -> DynamicSizes:
    """How a model's open dimensions are compiled: cut as its program is.

    given: the model, as `compile` takes it.  dims: those that have numbers.
    """
    source = Source(given, cache)
    inputs, _ = source.interface(cache)
    options = options_with(None, NOTHING, cache)
    known = bound_dims(inputs, dims)
    program = OpenProgram(inputs, known, source, options, cache, Report())
    try:
        samples = OpenRooms(program).decided()
    except (DataDependent, Error) as error:
        return DynamicSizes(str(error))
    return DynamicSizes(program.reason, multiple_of(samples))
