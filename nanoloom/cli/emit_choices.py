"""What `nanoloom compile` can write: the stages, and how their files are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from nanoloom.binary.output_forms import Form


@dataclass(frozen=True)
class Emit:
    """A stage's word and the ending of its file; comment: how a text begins one.

    Without `comment` it is no text.  by_kernel: one piece a kernel, not one a model.
    form: of a whole program.
    """

    word: str
    ending: str
    comment: str = ""
    by_kernel: bool = False
    form: Form | None = None

    @property
    def has_header(self) -> bool:
        """Whether a C header is written beside the file."""
        return self.form is not None and self.form != "executable"


EMITS = (
    Emit("graph", ".graph.onnx", "#"),
    Emit("linalg", ".linalg.mlir", "//"),
    Emit("layout", ".layout.txt", "#"),
    Emit("kernels", ".kernels.mlir", "//"),
    Emit("fusion", ".fusion.txt", "#"),
    Emit("schedule", ".schedule.mlir", "//", by_kernel=True),
    Emit("vector", ".vector.mlir", "//", by_kernel=True),
    Emit("llvm", ".llvm.ll", ";", by_kernel=True),
    Emit("asm", ".s", "#", by_kernel=True),
    Emit("bare", ".bare.o", form="bare"),
    Emit("object", ".o", by_kernel=True),
    Emit("static", ".a", form="static"),
    Emit("shared", ".so", form="shared"),
    Emit("executable", "", form="executable"),
    Emit("all", ""),
)
WORDS = ", ".join(emit.word for emit in EMITS)
OTHER_ENDINGS = {".onnx": "graph", ".ll": "llvm", ".asm": "asm", ".dylib": "shared"}
BY_WORD = {emit.word: emit for emit in EMITS}
STDOUT = Path("-")


def emit_choice(word: str | None, out: Path) -> Emit:
    """What to write: the word after `--emit`, or what the file's ending says.

    A file without an ending is an executable, as compilers have it; what is in a
    folder, a shared library, as is a file with a version behind .so.
    Raises typer.BadParameter for an unknown word, or none and nothing to go by.
    """
    if word is not None:
        if word not in BY_WORD:
            raise typer.BadParameter(f"{word} is none of {WORDS}", param_hint="--emit")
        emit = BY_WORD[word]
        if out == STDOUT and not emit.comment:
            reason = f"{word} is no text, name a file"
            raise typer.BadParameter(reason, param_hint="--out")
        return emit
    if out == STDOUT:
        reason = f"say what to print with --emit: {WORDS}"
        raise typer.BadParameter(reason, param_hint="--out")
    for emit in EMITS:
        if emit.ending and out.name.endswith(emit.ending):
            return emit
    if not out.suffix and not out.is_dir():
        return BY_WORD["executable"]
    if out.suffix not in OTHER_ENDINGS and ".so." not in out.name and not out.is_dir():
        reason = (
            f"the ending {out.suffix} says nothing; say --emit executable, shared, ..."
        )
        raise typer.BadParameter(reason, param_hint="--out")
    return BY_WORD[OTHER_ENDINGS.get(out.suffix, "shared")]


def place(emit: Emit, out: Path, model: Path) -> Path:
    """The file to write: `out`, or one with the model's name in the folder `out`.

    Objects are the exception: a folder receives one of each kernel.
    """
    if emit.word == "object":
        return out
    return out / f"{model.stem}{emit.ending}" if out.is_dir() else out
