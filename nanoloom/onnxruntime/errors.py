"""ONNX Runtime's classes of errors, and which of them an error of nanoloom's is."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from nanoloom.errors import Error, InputError, InternalError, ModelError, Unsupported

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Fail(Exception):
    """Anything that has no class of its own."""


class InvalidArgument(Exception):
    """An input or option is not what the model takes."""


class NoSuchFile(Exception):
    """There is no file of this name."""


class NoModel(Exception):
    """There is no model."""


class EngineError(Exception):
    """The machine refuses."""


class RuntimeException(Exception):
    """A fault of the runtime's own."""


class InvalidProtobuf(Exception):
    """The file is no ONNX model."""


class ModelLoaded(Exception):
    """A model is there already."""


class Unavailable(Exception):
    """A valid model that does not compile, or an option that there is not."""


Unavailable.__name__ = Unavailable.__qualname__ = "NotImplemented"  # not Python's own


class InvalidGraph(Exception):
    """The model contradicts itself."""


class EPFail(Exception):
    """A provider failed."""


DAMAGED = ("no ONNX", "damaged", "is empty", "cut off", "is not an ONNX")


def translated(error: Error) -> Exception:
    """The same sentence, as the class that clients of ONNX Runtime catch."""
    said = str(error)
    if isinstance(error, InputError):
        return InvalidArgument(said)
    if isinstance(error, Unsupported):
        return Unavailable(said)
    if isinstance(error, InternalError):
        return RuntimeException(said)
    if "no such" in error.reason or is_missing(error):
        return NoSuchFile(said)
    if isinstance(error, ModelError):
        damaged = any(word in error.reason for word in DAMAGED)
        return InvalidProtobuf(said) if damaged else InvalidGraph(said)
    return Fail(said)


def is_missing(error: Error) -> bool:
    """Whether the system has not found a file."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno == errno.ENOENT


def translating(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """What goes wrong inside is raised as ONNX Runtime would."""

    @wraps(work)
    def guarded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return work(*args, **kwargs)
        except Error as error:
            raise translated(error) from error

    return guarded
