"""MLIR text: one function on tensors, in linalg, becomes what the linalg stage gives.

Named operations are generalized, and constants with more than one value leave the IR.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nanoloom.cache.digest import of
from nanoloom.errors import InputError, ModelError, Unsupported
from nanoloom.ir.mlir import context, ir, operations, run_pipeline
from nanoloom.linalg.stage import LinalgModule, Spec
from nanoloom.notation.allowed_mlir import line_of, require_operations
from nanoloom.notation.from_mlir import Conversion
from nanoloom.notation.pad_lowering import write_out_pads

GENERALIZE = (
    "convert-elementwise-to-linalg",  # arith and math on whole tensors
    "linalg-generalize-named-ops",
    "canonicalize",  # loops of one trip are none: nothing settles in their memory
)
# What the parser cannot be given: it ends the process at anything but a list here.
LISTED = re.compile(
    r"\b(permutation|dimensions)\s*=(?!\s*\[\s*(\d+\s*(,\s*\d+\s*)*)?\])"
)
COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True)
class Text:
    """MLIR text.  place: its file, for messages."""

    text: str
    place: str = "MLIR text"

    @staticmethod
    def of_file(path: Path) -> Text:
        """Raises InputError for a file that cannot be read."""
        try:
            return Text(path.read_text("utf-8"), str(path))
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            raise InputError(reason, where=str(path)) from None
        except UnicodeDecodeError:
            raise ModelError("is no text", where=str(path)) from None

    @cached_property
    def digest(self) -> str:
        return of("MLIR text", self.text)

    @property
    def inputs(self) -> tuple[Spec, ...]:
        return self.interface[0]

    @property
    def outputs(self) -> tuple[Spec, ...]:
        return self.interface[1]

    @cached_property
    def interface(self) -> tuple[tuple[Spec, ...], tuple[Spec, ...]]:
        with context():
            lowered = self.lower()
            return lowered.inputs, lowered.outputs

    def where(self, location: object) -> str:
        """A place in the text, for a message."""
        line = line_of(location)
        return self.place if line is None else f"{self.place}:{line}"

    def lower(self) -> LinalgModule:
        """The linalg stage; an MLIR context must be current.

        Raises ModelError for what is no MLIR, Unsupported for what is not taken.
        """
        module = self.parsed()
        main = self.main(module)
        for op in operations(module, lambda op: op.operation.name == "func.call"):
            raise Unsupported(
                "calls another function",
                where=self.where(op.operation.location),
                hint="inline it: mlir-opt -inline",
            )
        for op in list(module.body.operations):
            if op != main:
                op.operation.erase()
        require_types_of_results(module, self)
        write_out_pads(module)
        run_pipeline(module, GENERALIZE)
        require_operations(module, self.where)
        return Conversion(module, main, self.where).result()

    def parsed(self) -> ir.Module:
        code = COMMENT.sub("", self.text)
        if found := LISTED.search(code):
            line = code.count("\n", 0, found.start()) + 1
            raise ModelError(
                f"is no valid MLIR: {found[1]} is no list of numbers",
                where=f"{self.place}:{line}",
            )
        try:
            return ir.Module.parse(self.text)
        except ir.MLIRError as error:
            told = error.error_diagnostics[0]
            raise ModelError(
                f"is no valid MLIR: {' '.join(told.message.split())}",
                where=self.where(told.location),
            ) from None

    def main(self, module: ir.Module) -> ir.OpView:
        """@main, or the only public function."""
        found = list(module.body.operations)
        for op in found:
            if op.operation.name != "func.func":
                raise Unsupported(
                    f"{op.operation.name} stands beside the function",
                    where=self.where(op.operation.location),
                    hint="give a module with one func.func",
                )
        bodies = [op for op in found if list(op.operation.regions[0].blocks)]
        chosen = [op for op in bodies if name_of(op) == "main"] or [
            op for op in bodies if is_public(op)
        ]
        if len(chosen) != 1:
            listed = ", ".join(f"@{name_of(op)}" for op in chosen) or "none"
            raise ModelError(
                f"one public function is wanted, there is {listed}",
                where=self.place,
                hint="call it @main",
            )
        return chosen[0]


def name_of(op: ir.OpView) -> str:
    return op.operation.attributes["sym_name"].value  # type: ignore[attr-defined]


def is_public(op: ir.OpView) -> bool:
    words = op.operation.attributes
    return "sym_visibility" not in words or words["sym_visibility"].value == "public"  # type: ignore[attr-defined]


def require_types_of_results(module: ir.Module, text: Text) -> None:
    """Raise Unsupported for a result that is no tensor: a memref, a number."""
    (main,) = module.body.operations
    kinds: ir.FunctionType = main.operation.attributes["function_type"].value  # type: ignore[attr-defined]
    for kind in (*kinds.inputs, *kinds.results):
        if not isinstance(kind, ir.RankedTensorType):
            raise Unsupported(
                f"its function takes or gives {kind}",
                where=text.where(main.operation.location),
                hint="write ranked tensors",
            )
    if not kinds.results:
        raise Unsupported("its function gives nothing", where=text.place)
