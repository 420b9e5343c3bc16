"""Every error a user can cause: one clear sentence, never a traceback.

`assert` and other exceptions are for nanoloom's own bugs.  The command line turns an
`Error` into one line on stderr and exit status 1.
"""

from __future__ import annotations

import difflib
import errno
import functools
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import ParamSpec, TypeVar


class Error(Exception):
    """Something the user can put right: what, where, why and what to do about it."""

    def __init__(
        self, reason: str, *, where: str = "", hint: str = "", stage: str = ""
    ) -> None:
        self.reason = reason
        self.where = where
        self.hint = hint
        self.stage = stage
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        way_out = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.reason}{way_out}"

    def __reduce__(self) -> tuple[object, ...]:
        """As another process raises it again: with all its fields."""
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[Error], args: tuple[str], fields: dict[str, object]) -> Error:
    error = kind.__new__(kind, *args)
    vars(error).update(fields)
    return error


class ModelError(Error):
    """The model file is damaged, invalid or missing a part."""


class ModelWarning(UserWarning):
    """Something odd in a model, which runs all the same."""


class InputError(Error):
    """An input array has the wrong name, type or shape, or an index out of range."""


class UnfitBranch(InputError):
    """A branch is taken that no program for all sizes has: few sizes fit it."""


class Cancelled(Error):
    """A call that was cancelled before it was done; its outputs mean nothing."""


class TimedOut(Error, TimeoutError):
    """A call that took longer than its `timeout`; its outputs mean nothing."""


class Unsupported(Error):
    """A valid model that nanoloom does not compile (operator, type or attribute)."""


class DataDependent(Unsupported):
    """A shape depends on the values of inputs: those must be known while compiling.

    inputs: names of the model's inputs whose values would be needed.
    """

    def __init__(self, reason: str, inputs: tuple[str, ...], **place: str) -> None:
        self.inputs = inputs
        super().__init__(reason, **place)


class InternalError(Error):
    """A bug of nanoloom, not of the model; `__cause__` is what went wrong.

    where: the stage, the node or the kernel, as far as that is known.
    """


# Of an OSError that the machine or a place the user named is to blame for.
SURROUNDINGS = frozenset(
    (
        errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES,
        errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO,
        errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE, errno.ENFILE, errno.ETXTBSY,
        errno.EBUSY, errno.ESTALE, errno.ENOMEM,
    )
)  # fmt: skip

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def public(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The border to the user: whatever goes wrong inside is an Error."""

    @functools.wraps(work)
    def guarded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return work(*args, **kwargs)
        except Error:
            raise
        except Exception as error:
            trace = error.__traceback__
            if isinstance(error, TypeError) and trace and trace.tb_next is None:
                raise  # the call itself: arguments that `work` does not have
            raise explained(error) from error

    return guarded


def explained(error: Exception) -> Error:
    """An exception of any kind as what the user is told of it."""
    if isinstance(error, Error):
        return error
    if isinstance(error, MemoryError):
        reason = str(error) or "the memory of this machine is not enough"
        return Error(reason, hint="use smaller dimensions or a machine with more")
    if isinstance(error, OSError) and error.errno in SURROUNDINGS:
        return refused("", error, where=str(error.filename or ""))
    return InternalError(
        f"this is a bug of nanoloom ({type(error).__name__}), not of your model",
        where=", ".join(reversed(getattr(error, "__notes__", ()))),
        hint="report it with the model",
    )


def refused(what: str, error: OSError, **place: str) -> Error:
    """What the system refuses, after what was tried; the way out, where it is known."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        reason = "no file descriptor is left"
        place["hint"] = "close files, or raise the limit with ulimit -n"
    return Error(f"{what}: {reason}" if what else reason, **place)


@contextmanager
def noting(where: str) -> Generator[None]:
    """Write on an exception that is no Error where it was on its way through."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        error.add_note(where)
        raise


def some_of(names: Iterable[str], wanted: str) -> str:
    """A hint: the names that come nearest to one that there is not."""
    known = sorted(set(names))
    near = difflib.get_close_matches(wanted, known, 3, 0.4) or known
    return f"some that there are: {', '.join(near[:3]) or 'none'}"
