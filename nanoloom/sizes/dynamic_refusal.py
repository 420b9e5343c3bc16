"""What stops a model from having sizes that are known only at run time."""

from __future__ import annotations


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
