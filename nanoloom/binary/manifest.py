"""What a library says of itself: JSON in a section of its file, which nothing loads.

    readelf --string-dump=.nanoloom.manifest model.so

nanoloom/manifest.py reads it, before any of the library's code runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from nanoloom import __version__
from nanoloom.binary.executable import Identity
from nanoloom.binary.table import ProgramTable
from nanoloom.interface.tensor import NONE, Tensor
from nanoloom.manifest import FORMAT


def manifest(table: ProgramTable, levels: Sequence[Identity]) -> bytes:
    """Of a program, and of the targets that the library has code for, least first."""
    last, sizes = levels[-1], table.sizes
    said = {
        "format": FORMAT,
        "nanoloom": __version__,
        "model": {"name": last.model, "digest": last.digest},
        "precision": last.precision,
        "targets": [each.target.name for each in levels],
        "inputs": [described(x, table) for x in table.given],
        "outputs": [described(x, table) for x in table.made],
        "strings": asdict(last.strings),
        "dimensions": {x: str(sizes.bounds_of(x)) for x in sizes.chosen}
        if sizes
        else {},
        "session": table.kept > 0,
        "parameter_bytes": table.parameter_bytes,
    }
    return json.dumps(said, indent=1, ensure_ascii=False).encode() + b"\n"


def described(tensor: Tensor, table: ProgramTable) -> dict[str, object]:
    """An input or output; a dimension that is a size is written as the model has it."""
    words = tensor.words or (NONE,) * len(tensor.shape)
    known = table.sizes.words if table.sizes else ()
    shape = [
        number if word == NONE else str(known[word])
        for number, word in zip(tensor.shape, words, strict=True)
    ]
    kind = tensor.element.name.lower()
    return {"name": tensor.name, "element": kind, "shape": shape}
