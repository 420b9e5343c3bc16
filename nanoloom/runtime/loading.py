"""A library's code in this process: checked, loaded, unloaded when nobody has it."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import sys
from pathlib import Path

from nanoloom import __version__, manifest, sealed_files, trusted_files
from nanoloom.errors import Error, refused
from nanoloom.runtime import layout

_process = ctypes.CDLL(None)
_close = _process.dlclose
_close.argtypes = (ctypes.c_void_p,)
# glibc keeps what is freed of small pieces until somebody asks for it.
_trim = getattr(_process, "malloc_trim", None)
_loads = itertools.count()
_OWN_FILES = Path("/proc/self/fd")


class Code:
    """Loaded code, which goes when all who hold it have released it.

    Counted, not left to Python's references: of a cycle that is lost, the garbage
    collector ends the objects in any order, and their ends call the code.
    """

    def __init__(self, handle: int) -> None:
        self._holders = [handle]  # a row of zeros behind it: the last one takes it

    def hold(self) -> Code:
        """One more release is to come; for somebody who got it from a holder."""
        self._holders.append(0)
        return self

    def release(self) -> None:
        """Call none of the code any more."""
        handle = self._holders.pop()  # at once, whatever threads do meanwhile
        if handle and not sys.is_finalizing():
            _close(handle)
            if _trim is not None:
                _trim(0)


def load(path: Path) -> tuple[Code, layout.Library]:
    """The code of a library, held, and its entry, which is valid until the release.

    Raises:
        Error: the file is no library for this machine, not one of nanoloom's, or not
            the one that was written: the system would run what is left of it.
    """
    check(path)
    require_format(path)
    try:
        library = _loaded(path.resolve())
    except OSError as error:
        raise Error(f"cannot load the library: {error}", where=str(path)) from error
    code = Code(library._handle)
    try:
        entry = layout.Library.in_dll(library, "nanoloom_library")
    except ValueError as error:
        code.release()
        hint = "compile the model with nanoloom"
        raise Error("no nanoloom library", where=str(path), hint=hint) from error
    version = int(entry.version)  # it goes with the library
    if version != layout.VERSION:
        code.release()
        raise of_another_format(path, version)
    why = refusal(library)
    if why:
        code.release()
        raise Error(why, where=str(path))
    return code, entry


def require_format(path: Path) -> None:
    """Raise Error for a library whose manifest names another format: its code would
    not even be looked at."""
    said = manifest.read(path)
    if said is not None and said.get("format") != layout.VERSION:
        raise of_another_format(path, said.get("format"), said.get("nanoloom", ""))


def of_another_format(path: Path, found: object, version: str = "") -> Error:
    """What to say of a library that another version of nanoloom has written."""
    whose = f"nanoloom {version}" if version else "another version of nanoloom"
    return Error(
        f"was made by {whose}, in format {found}; nanoloom {__version__} reads "
        f"format {layout.VERSION}",
        where=str(path),
        hint="compile the model again, or install that version",
    )


def refusal(library: ctypes.CDLL) -> str:
    """Why a library with code for several CPUs has none for this one; "" for others."""
    if not hasattr(library, "nanoloom_refusal"):
        return ""
    library.nanoloom_refusal.restype = ctypes.c_char_p
    return (library.nanoloom_refusal() or b"").decode(errors="replace")


def check(path: Path) -> None:
    """Raise Error for a file that is not, byte for byte, a library of nanoloom's, or
    that a user could have written who is not trusted."""
    try:
        others = trusted_files.others_of(path)
        whole = None if others else sealed_files.is_whole(path)
    except OSError as error:
        raise refused("cannot load the library", error, where=str(path)) from error
    if others:
        raise Error(
            f"somebody else could have written it: {others}",
            where=str(path),
            hint=f"copy it to a folder of yours, or name who may in "
            f"{trusted_files.VARIABLE}",
        )
    if whole is None:
        raise Error(
            "is no library of nanoloom, or not all of one",
            where=str(path),
            hint="compile the model with nanoloom, or copy the library again",
        )
    if not whole:
        raise Error(
            "is damaged: it holds other bytes than were written",
            where=str(path),
            hint="copy the library again, or compile the model again",
        )


def _loaded(path: Path) -> ctypes.CDLL:
    """The library; from a copy in memory where its file system runs no code."""
    if not is_noexec(path):
        return ctypes.CDLL(_spelled(path, next(_loads)))
    try:
        descriptor = os.memfd_create(path.name)
        with path.open("rb") as file, os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            return ctypes.CDLL(_spelled(_OWN_FILES / str(descriptor), next(_loads)))
    except OSError as error:
        raise Error(
            f"its file system runs no code (noexec), nor does memory ({error})",
            where=str(path),
            hint="put it, or the cache (NANOLOOM_CACHE), where code may run",
        ) from None


def is_noexec(path: Path) -> bool:
    """Whether the file system of a file was mounted so that none of it runs."""
    return bool(os.statvfs(path).f_flag & os.ST_NOEXEC)


def _spelled(path: Path, number: int) -> str:
    """The path in a way that no other number has.

    The system takes a name that it has loaded for loaded, whatever that file is by now.
    """
    parting = "".join("/." if digit == "1" else "/" for digit in f"{number:b}")
    return f"{path.parent}{parting}/{path.name}"
