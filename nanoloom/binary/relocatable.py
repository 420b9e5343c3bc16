"""A program as a part of another one: an object or an archive, and its header.

Whatever else is in that other program: the part shows its public functions alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nanoloom.binary.archive import archive_head
from nanoloom.binary.assemble import Compiled
from nanoloom.binary.elf import Machine, empty_object, with_content
from nanoloom.binary.link import Source, compile_c, merged
from nanoloom.binary.object_symbols import localized
from nanoloom.binary.output_files import refusing, replaced
from nanoloom.binary.program_data import PARAMETER_SYMBOL
from nanoloom.cache import Cache
from nanoloom.errors import Error


@dataclass(frozen=True)
class Part:
    """A program, its name in C, and the words behind that of its public functions."""

    compiled: Compiled
    name: str
    words: tuple[str, ...]

    def linked(
        self,
        sources: Sequence[Source],
        triple: str,
        cache: Cache,
        flags: Sequence[str] = (),
    ) -> bytes:
        """Kernels, their table and a runtime as one object, all names still shown.

        flags: more of the C compiler's.
        """
        flags = ("-fno-addrsig", *flags)  # numbers of symbols, which will change
        size = self.compiled.parameters.size
        every = [*self.compiled.levels, *sources]
        runtime = compile_c(every, triple=triple, flags=flags, cache=cache)
        tables = self.compiled.table_objects(runtime[0])
        objects = [*runtime, *tables, *self.compiled.objects]
        if size:
            machine = Machine.of(objects[0][:64])
            objects.append(empty_object(machine, PARAMETER_SYMBOL, size))
        return merged(objects, self.name, cache)

    def write(self, code: bytes, output: Path, header: str) -> Path:
        """Write the object, or an archive for an output in .a, and the header beside.

        Both appear whole or not at all; the path of the header.  Raises Error if the
        disk refuses.
        """
        beside = output.with_suffix(".h")
        if beside == output:
            raise Error("an object cannot end in .h", where=str(output))
        shown = [f"nanoloom_{self.name}_{word}" for word in self.words]
        parameters = self.compiled.parameters
        code = localized(code, shown)
        code = with_content(code, parameters.size) if parameters.size else code
        code += bytes(len(code) % 2)
        with (
            refusing(output),
            replaced(output) as file,
            replaced(beside) as text,  # there first: with the object, all is
        ):
            text.write(header.encode())
            if output.suffix == ".a":
                whole = len(code) + parameters.size
                file.write(archive_head(f"{self.name}.o", whole, shown))
            file.write(code)
            if parameters.size:
                parameters.append_to(file)
        return beside
