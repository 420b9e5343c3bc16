"""LLVM IR text to machine code by the clang in ziglang: many modules by one process.

It is the LLVM that llvmlite has, in the same release, but built without assertions
about itself: the same objects, byte for byte, in two thirds of the time.  The process
takes as long to start as a small kernel takes to compile.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import llvmlite.binding as llvm

from nanoloom.binary.objects import DEFAULT_OPTIONS, Machine, layout_of
from nanoloom.binary.toolchain import zig
from nanoloom.errors import Error
from nanoloom.llvm.float_literals import to_llvm22
from nanoloom.llvm.scalar_stores import MASKED, scalar_stores

RELEASE = re.compile(rb"based upon LLVM (\d+)\.(\d+)\.")
MODELS = {"default": (), "medium": ("-mcmodel=medium",)}
LAST_PASS = "annotation-remarks"  # of the optimizer
OPTIMIZED = "optimized"  # the folder of what the optimizer has left
NAME = re.compile(r"^; \*\*\* IR Dump After \w+ on (\S+) \*\*\*$", re.MULTILINE)
ENTRIES = re.compile(r"^define (?!internal )[^@\n]*@([-\w.$]+)\(", re.MULTILINE)


def objects_of(
    texts: Sequence[str], machine: Machine, folder: Path
) -> list[bytes | None]:
    """What `objects.emit` makes of modules in LLVM 24's text.

    None for those that are left to it: what it mends between the optimizer and the code
    generator, and all where there is no such clang, or one does not compile.
    folder: where files may lie for a moment.
    """
    none: list[bytes | None] = [None] * len(texts)
    head = (
        'source_filename = "<string>"\n'  # of those that say none, as llvmlite has it
    )
    head += f'target datalayout = "{layout_of(machine)}"\n'
    head += f'target triple = "{machine["triple"]}"\n'
    asked = [ENTRIES.findall(text) if MASKED in text else [] for text in texts]
    try:
        with TemporaryDirectory(dir=folder) as place:
            for n, text in enumerate(texts):
                Path(place, f"{n}.ll").write_text(head + to_llvm22(text), "utf-8")
            words = [*words_of(machine), *words_to_show([*chain(*asked)])]
            if not compiled([*words, "-x", "ir"], len(texts), place):
                return none
            clear = clear_among(Path(place, OPTIMIZED))
            return [
                Path(place, f"{n}.o").read_bytes() if clear.issuperset(names) else None
                for n, names in enumerate(asked)
            ]
    except (OSError, Error):  # no tool, no room: the other way needs neither
        return none


def compiled(words: Sequence[str], count: int, place: str) -> bool:
    """Whether files 0.ll, 1.ll, ... have become objects beside them."""
    done = subprocess.run(
        [str(zig()), "clang", "-cc1", *words, *(f"{n}.ll" for n in range(count))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=place,
        check=False,
    )
    said = RELEASE.search(done.stderr)
    same = said is not None and tuple(map(int, said.groups())) == release()
    return done.returncode == 0 and same


def clear_among(folder: Path) -> set[str]:
    """The functions there in which nothing is to be mended."""
    texts = [path.read_text("utf-8") for path in folder.glob("*")]
    return {name[1] for t in texts if (name := NAME.match(t)) and is_clear(t)}


def is_clear(text: str) -> bool:
    """Whether there is nothing to mend in a function."""
    try:
        return scalar_stores(text) is text
    except RuntimeError:
        return False


def release() -> tuple[int, ...]:
    """Of the LLVM that llvmlite has."""
    return tuple(llvm.llvm_version_info[:2])


def words_of(machine: Machine) -> Iterator[str]:
    """The options for a target, and those that `emit` gives to LLVM."""
    yield from ("-v", "-emit-obj", f"-O{DEFAULT_OPTIONS.level}")
    yield from ("-mrelocation-model", "pic", "-pic-level", "2")
    yield from ("-triple", machine["triple"], "-target-cpu", machine["cpu"])
    yield from MODELS[machine.get("code_model", "default")]
    if machine.get("abi"):
        yield from ("-target-abi", machine.get("abi", ""))
    for feature in filter(None, machine.get("features", "").split(",")):
        yield from ("-target-feature", feature)


def words_to_show(functions: Sequence[str]) -> Iterator[str]:
    """The options for files with what the optimizer leaves of some functions."""
    if functions:
        yield from ("-mllvm", f"-print-after={LAST_PASS}")
        yield from ("-mllvm", f"-ir-dump-directory={OPTIMIZED}")
        yield from ("-mllvm", f"-filter-print-funcs={','.join(functions)}")
