"""What stops a model from having sizes that are known only at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from nanoloom.dynamic.floor_division import dim_of
from nanoloom.errors import DataDependent
from nanoloom.interface.room_names import DIMENSION


class Others(IntEnum):
    """Which other samples may do, where some do not (dynamic/samples.py)."""

    NONE = 0
    ANY = 1
    OF_IMAGES = 2  # that tell floors of dimensions apart


class NotDynamic(Exception):
    """Samples of a model differ otherwise than in sizes; says in what.

    others: samples that may not.  computed: a constant that would do if the program
    computed it, by name.  wanted: rooms that would do, if no samples do.
    """

    def __init__(
        self,
        reason: str,
        *,
        others: Others = Others.NONE,
        computed: str = "",
        wanted: DataDependent | None = None,
    ) -> None:
        super().__init__(reason)
        self.others, self.computed, self.wanted = others, computed, wanted


def no_size(what: str, names: Iterable[str]) -> NotDynamic:
    """A number that depends on dimensions in a way that no program computes."""
    dims = sorted({dim_of(name) for name in names})
    hint = f"give one a number (--dim {dims[0]}=N)" if dims else ""
    return NotDynamic(f"{what} is no known function of {listed(dims)}; {hint}")


def not_told_apart(names: Sequence[str]) -> str:
    """The reason where there are no samples, or none that say one."""
    few = " ".join(f"--dim {name}=N" for name in names[:2])
    return (
        f"{len(names)} dimensions are open, more than are told apart; "
        f"give some of them numbers ({few})"
    )


def with_dims(reason: NotDynamic, dims: Iterable[str]) -> NotDynamic:
    """The same, and which dimensions it is about, if it does not say that itself.

    Nobody can give a number for those of rooms.
    """
    names = sorted(name for name in dims if not name.startswith(DIMENSION))
    text = str(reason)
    if names and "--dim" not in text:
        verb, words = ("are", "them numbers") if names[1:] else ("is", "it a number")
        how = " ".join(f"--dim {name}=N" for name in names)
        text = f"{text}, and {listed(names)} {verb} open; give {words} ({how})"
    return NotDynamic(
        text, others=reason.others, computed=reason.computed, wanted=reason.wanted
    )


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
