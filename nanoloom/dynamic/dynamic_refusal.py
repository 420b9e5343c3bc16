"""What stops a model from having sizes that are known only at run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nanoloom.dynamic.floor_division import dim_of


class NotDynamic(Exception):
    """Samples of a model differ otherwise than in sizes; says in what.

    for_images: other samples may not (dynamic/samples.py).  computed: a constant that
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
    hint = f"give one a number (--dim {dims[0]}=N)" if dims else ""
    return NotDynamic(f"{what} is no known function of {listed(dims)}; {hint}")


def with_dims(reason: NotDynamic, dims: Iterable[str]) -> NotDynamic:
    """The same, and which dimensions it is about, if it does not say that itself."""
    names, text = sorted(dims), str(reason)
    if names and "--dim" not in text:
        verb, words = ("are", "them numbers") if names[1:] else ("is", "it a number")
        how = " ".join(f"--dim {name}=N" for name in names)
        text = f"{text}, and {listed(names)} {verb} open; give {words} ({how})"
    return NotDynamic(text, for_images=reason.for_images, computed=reason.computed)


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
