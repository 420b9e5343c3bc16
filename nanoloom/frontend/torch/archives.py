"""torch.export.load, which asks for the annotations of a class once.

torch's reader asks for them at each value of an archive: more than half of the time
that it takes for a large model.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

READER = "torch._export.serde.serialize"


def load(path: Path) -> object:
    """The ExportedProgram in a file.  Raises what torch.export.load does."""
    import torch

    with annotations_once():
        return torch.export.load(path)


@contextmanager
def annotations_once() -> Generator[None]:
    """While it lasts, torch's reader has the annotations of a class from before.

    A release whose reader asks elsewhere reads as it does.
    """
    try:
        reader = import_module(READER)
    except ImportError:
        reader = SimpleNamespace()
    if getattr(reader, "typing", None) is not typing:
        yield
        return
    known = remembered(typing.get_type_hints)
    try:
        reader.typing = SimpleNamespace(**vars(typing) | {"get_type_hints": known})
        yield
    finally:
        reader.typing = typing


def remembered(asked: Callable[..., dict[str, object]]) -> Callable[..., object]:
    """A function of a class, which is asked once for each: its other arguments are the
    same."""
    found: dict[object, dict[str, object]] = {}

    def answer(cls: object, **others: object) -> dict[str, object]:
        if cls not in found:
            found[cls] = asked(cls, **others)
        return found[cls]

    return answer
