"""What stops a model from having sizes that are known only at run time."""

from __future__ import annotations

from collections.abc import Iterable

from nanoloom.sizes.floor_division import dim_of


class NotDynamic(Exception):
    """Samples of a model differ otherwise than in sizes; says in what.

    for_images: other samples may not (sizes/samples.py).  computed: a constant that
    would do if the program computed it, by name.
    """

    def __init__(
        self, reason: str, *, for_images: bool = False, computed: str = ""
    ) -> None:
        super().__init__(reason)
        self.for_images, self.computed = for_images, computed


def no_size(what: str, names: Iterable[str]) -> NotDynamic:
    """A number that depends on dimensions in a way that no program computes."""
    dims = sorted({dim_of(name) for name in names})
    which = " and ".join([", ".join(dims[:-1]), dims[-1]] if dims[1:] else dims)
    hint = f"give one a number (--dim {dims[0]}=N)" if dims else ""
    return NotDynamic(f"{what} is no known function of {which}; {hint}")
