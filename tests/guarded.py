"""Arrays flush against pages that cannot be touched: a byte too far is a signal.

Kernels may read and write what they were given and nothing else, not even bytes that
would not matter.  Pages without any rights on both sides prove it, one array at a time
for one side; what is left of an array's pages is filled with a pattern and checked.

    guarded = Guarded.of(array, Side.END)        # its last byte is the last of a page
    outputs = run_guarded(program, inputs, side)  # a program's call, every array so
    assert in_child(check, 17) == ...             # a signal there is a failure here
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import multiprocessing
import signal
from collections.abc import Callable, Mapping
from enum import Enum
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import numpy as np

from nanoloom.api.program import Program
from nanoloom.interface.data_dependent_outputs import trimmed
from nanoloom.interface.room_names import needed_outputs, room_inputs
from nanoloom.runtime.roomed import Roomed
from nanoloom.runtime.variant import Variant

Result = TypeVar("Result")

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
PAGE = mmap.PAGESIZE
NO_RIGHTS = 0
REST = 0xA5  # bytes of the array's pages that are not the array's, to stay as they are
SECONDS = 600  # that a child may take


class Side(Enum):
    """Where an array touches its guard page."""

    START = "start"
    END = "end"


class Guarded:
    """An array between two pages that cannot be touched, flush against one of them.

    array: new ones hold NaN in every float type, -1 in every integer.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, side: Side = Side.END
    ) -> None:
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        room = -(-size // PAGE) * PAGE
        pages = np.frombuffer(mmap.mmap(-1, room + 2 * PAGE), np.uint8)
        first = pages.__array_interface__["data"][0]
        for guard in (first, first + PAGE + room):
            if _LIBC.mprotect(guard, PAGE, NO_RIGHTS) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
        start = PAGE if side is Side.START else PAGE + room - size
        self._rest = (pages[PAGE:start], pages[start + size : PAGE + room])
        for part in self._rest:
            part[:] = REST
        self._bytes = pages[start : start + size]
        self._bytes[:] = 0xFF
        self.array = self._bytes.view(dtype).reshape(shape)
        self.address = first + start

    @classmethod
    def of(cls, array: np.ndarray, side: Side = Side.END) -> Guarded:
        """A guarded copy."""
        made = cls(array.shape, array.dtype, side)
        made.array[...] = array
        return made

    def is_rest_intact(self) -> bool:
        """Whether the bytes around the array, up to the guards, are as they were."""
        return all(bool((part == REST).all()) for part in self._rest)


def run_guarded(
    program: Program, inputs: Mapping[str, np.ndarray], side: Side = Side.END
) -> dict[str, np.ndarray]:
    """A program's outputs for inputs that fit, every array of the call guarded.

    Fails if an input or the bytes beside an array change.  A signal ends the process:
    call it inside `in_child`.
    """
    variant = program.variant(inputs)
    all_inputs = {**inputs, **settled(variant, inputs)}
    given = [Guarded.of(np.asarray(all_inputs[name]), side) for name in variant.inputs]
    made = [
        Guarded(x.shape, x.element.dtype, side)
        for x in variant.library.outputs  # in the order of variant.outputs
    ]
    variant.instance.run([x.array for x in given], [x.array for x in made])
    names = (*variant.inputs, *variant.outputs)
    for name, x in zip(names, (*given, *made), strict=True):
        assert x.is_rest_intact(), f"bytes beside {name} were written"
    for name, x in zip(variant.inputs, given, strict=True):
        wanted = np.asarray(all_inputs[name])
        assert x.array.tobytes() == wanted.tobytes(), f"input {name} was written"
    outputs = {name: x.array for name, x in zip(variant.outputs, made, strict=True)}
    if isinstance(variant, Roomed):
        needed = [int(outputs.pop(name)[0]) for name in needed_outputs(variant.rooms)]
        if variant.wanted(variant.sizes, needed) != variant.sizes:
            return variant(inputs)  # another program ran, made for these values
    return trimmed(outputs, variant.counted)


def settled(
    variant: Variant, inputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The rooms of a program whose sizes only the data decide, after a run says them.

    These are inputs too, which it does not read; empty for every other program.
    """
    if not isinstance(variant, Roomed):
        return {}
    variant(inputs)
    pairs = zip(room_inputs(variant.rooms), variant.sizes, strict=True)
    return {name: np.zeros(size, np.bool_) for name, size in pairs}


def in_child(
    function: Callable[..., Result], *arguments: Any, seconds: float = SECONDS
) -> Result:
    """What a function of a module gives, run in a process of its own.

    Fails if the process dies of a signal or takes too long; raises what it raises.
    Arguments, result and exceptions are pickled.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(there, function, arguments))
    child.start()
    there.close()
    try:
        answered = here.poll(seconds)
        assert answered, f"{function.__name__} took more than {seconds} seconds"
        good, value = here.recv()
    except EOFError:
        child.join()
        code = child.exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        raise AssertionError(f"{function.__name__} ended with {how}") from None
    finally:
        child.kill()
        child.join()
        here.close()
    if not good:
        raise value
    return value


def _answer(
    there: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    faulthandler.enable()  # where a signal came, on the standard error
    try:
        answer = (True, function(*arguments))
    except Exception as error:  # noqa: BLE001 - whatever it is goes to the parent
        answer = (False, error)
    there.send(answer)
