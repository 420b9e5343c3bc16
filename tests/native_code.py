"""Compiled code in the process of a test: what it may call, and how it is called.

A library of nanoloom brings the functions along that LLVM calls on CPUs without some
instructions (`nanoloom/runtime/conversions.c`).  Code that a test loads without a
linker gets the same ones, whatever CPU is below it; a name that is missing fails the
test before it is called.  A signal in such code is a failure of that test alone.
"""

from __future__ import annotations

import ctypes
import signal
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torch_mlir.execution_engine import ExecutionEngine

from nanoloom.binary.link import Source, compile_c, link_shared
from nanoloom.binary.object_symbols import wanted
from nanoloom.cache import Cache
from nanoloom.ir.mlir import ir
from nanoloom.target.host import host

FOLDER = tempfile.TemporaryDirectory(prefix="nanoloom-native-code-")
ENTRY = "trapped_call"
BY_LINKER = "_GLOBAL_OFFSET_TABLE_"


@cache
def support_library() -> Path:
    """A shared library of the conversions, and of calls that signals do not end."""
    kept = Cache(Path(FOLDER.name) / "cache")
    text = Path(__file__).with_suffix(".c").read_text("utf-8")
    sources = Source.of_runtime("conversions"), Source("native_code", text)
    flags = ("-fvisibility=default",)
    objects = compile_c(sources, triple=host().triple, flags=flags, cache=kept)
    made = Path(FOLDER.name) / "native_code.so"
    link_shared(objects, made, exports=["__*", "roundeven*", ENTRY], cache=kept)
    return made


@cache
def loaded() -> Any:
    return ctypes.CDLL(str(support_library()), ctypes.RTLD_GLOBAL)


def call(address: int, *arguments: int | None) -> None:
    """Call code of at most four arguments: pointers, but for the two in the middle.

    Fails where a signal ends it; what it wrote before stays.
    """
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    function = getattr(loaded(), ENTRY)
    function.argtypes = pointer, pointer, number, number, pointer
    padded = (*arguments, *[0] * (4 - len(arguments)))
    ended = function(address, *padded)
    assert ended == 0, f"compiled code ended by {signal.Signals(ended).name}"


def require_defined(objects: Sequence[bytes]) -> None:
    """Fails for names that nobody defines: what loads objects may not look."""
    loaded()
    process = ctypes.CDLL(None)
    names = {code: wanted(code) - {"", BY_LINKER} for code in objects}

    def is_defined(name: str) -> bool:
        text = name.encode() + b"\0"
        others = (text in code and name not in names[code] for code in objects)
        return hasattr(process, name) or any(others)

    missing = {
        name for found in names.values() for name in found if not is_defined(name)
    }
    assert not missing, f"compiled code calls {sorted(missing)}, which nobody defines"


class Engine:
    """A module's functions, compiled by MLIR for the CPU below, with a C interface."""

    def __init__(self, module: ir.Module, opt_level: int) -> None:
        own = [str(support_library())]
        self._engine = ExecutionEngine(module, opt_level=opt_level, shared_libs=own)

    def invoke(self, name: str, *descriptors: Any) -> None:
        """Call a function with the C structures of its memrefs."""
        address = self._engine.raw_lookup(f"_mlir_ciface_{name}")
        assert address, f"no function {name}"
        pointers = [ctypes.pointer(x) for x in descriptors]
        packed = (ctypes.c_void_p * len(pointers))(*map(ctypes.addressof, pointers))
        call(address, ctypes.addressof(packed))
