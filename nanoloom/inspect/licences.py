"""What is part of the files that nanoloom writes, and under which licence.

Code that is generated is its user's.  Beside it a library holds nanoloom's runtime; an
executable holds a C library as well.  Programs that were only used to compile leave
nothing in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

FORMS = ("shared", "static", "bare", "executable")
SPECIFICATION = "1.6"  # of CycloneDX


@dataclass(frozen=True)
class Component:
    """A part of a file.

    licence: an SPDX identifier.  package: the Python package that brings it, and text:
    its licence there.  forms: of the files that it is in.
    """

    name: str
    version: str
    licence: str
    what: str
    package: str
    text: Path
    forms: Sequence[str] = FORMS

    def licence_text(self) -> str:
        """The licence, as it has to go along with copies."""
        return self.text.read_text("utf-8")


def components(form: str = "") -> tuple[Component, ...]:
    """Of the files of one form; of any for ""."""
    own, zig = distribution("nanoloom"), distribution("ziglang")
    lib = Path(str(zig.locate_file("ziglang")))
    musl = lib / "lib/libc/musl/COPYRIGHT"
    found = (
        Component(
            "nanoloom-runtime",
            own.version,
            "Apache-2.0",
            "threads, memory, the table of calls",
            "nanoloom",
            own_licence(),
        ),
        Component(
            "musl",
            musl_version(lib),
            "MIT",
            "the C library",
            "ziglang",
            musl,
            ("executable",),
        ),
        Component(
            "zig compiler_rt",
            zig.version,
            "MIT",
            "arithmetic that a CPU has no instructions for",
            "ziglang",
            lib / "LICENSE",
            ("executable",),
        ),
    )
    return tuple(x for x in found if not form or form in x.forms)


def own_licence() -> Path:
    """nanoloom's licence: of an installed package, or beside the sources."""
    here = Path(__file__).parents[2] / "LICENSE"
    if here.is_file():
        return here
    own = distribution("nanoloom")
    names = [x for x in own.files or () if x.name == "LICENSE"]
    return Path(str(own.locate_file(names[0])))


def musl_version(lib: Path) -> str:
    """As its makers call it, in the copy that zig brings."""
    said = lib / "lib/libc/musl/src/internal/version.h"
    return (
        said.read_text().split('"')[1]
        if said.is_file()
        else distribution("ziglang").version
    )


def bill(form: str = "") -> dict[str, Any]:
    """A bill of materials as CycloneDX has it, the same each time."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "components": [
            {
                "type": "library",
                "bom-ref": f"{x.name}@{x.version}",
                "name": x.name,
                "version": x.version,
                "description": x.what,
                "licenses": [{"license": {"id": x.licence}}],
                "properties": [{"name": "nanoloom:forms", "value": " ".join(x.forms)}],
            }
            for x in components(form)
        ],
    }
