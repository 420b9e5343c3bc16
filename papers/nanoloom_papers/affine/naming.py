"""What a reader calls a value: its name in the text that was read, if there is one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom_papers.affine.location import Index, Location, Opaque

PLACE = re.compile(r':(\d+):(\d+)\)?"?\)?$')
NAME = re.compile(r"%[\w$.-]+")
GIVEN = re.compile(r"(%[\w$.-]+)(?::\d+)?((?:\s*,\s*%[\w$.-]+(?::\d+)?)*)\s*=\s*$")
SIGNS = {"mod": "mod", "floordiv": "floordiv", "ceildiv": "ceildiv", "mul": "*"}


@dataclass(frozen=True)
class Naming:
    """Names of values.  lines: of the text that the module was parsed from."""

    lines: tuple[str, ...] = ()

    def of(self, value: ir.Value) -> str:
        """As in the text; as MLIR would number it where the text is not known."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            line, column = place_of(value.location)
            found = NAME.match(self.line(line), column - 1)
            return found[0] if found else value.get_name()
        line, column = place_of(owner.location)
        before = GIVEN.search(self.line(line)[: column - 1])
        single = before is not None and len(list(owner.results)) == 1
        return before[1] if before and single else value.get_name()

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def location(self, location: Location) -> str:
        """%C[%i, %j + 1]"""
        indices = ", ".join(self.index(index) for index in location.indices)
        return f"{self.of(location.buffer)}[{indices}]"

    def index(self, index: Index) -> str:
        """%i * 2 + %j + 1, its terms in the order of their names."""
        terms = sorted((self.atom(atom), factor) for atom, factor in index.terms)
        words = [
            name if factor == 1 else f"{name} * {factor}" for name, factor in terms
        ]
        if index.constant or not words:
            words.append(str(index.constant))
        return " + ".join(words).replace("+ -", "- ")

    def atom(self, atom: ir.Value | Opaque) -> str:
        if not isinstance(atom, Opaque):
            return self.of(atom)
        left, right = self.index(atom.left), self.index(atom.right)
        return f"({left}) {SIGNS[atom.word]} {right}"


def place_of(location: ir.Location) -> tuple[int, int]:
    """Line and column of a place in a file, from 1 on; (0, 0) for any other."""
    found = PLACE.search(str(location))
    return (int(found[1]), int(found[2])) if found else (0, 0)
