"""Arrays checked against what a program takes: names, element types, shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, Protocol, cast

import numpy as np

from nanoloom.errors import InputError
from nanoloom.interface.dlpack import can_share, shared_array

Array = np.ndarray[Any, np.dtype[Any]]
EXTRA_TYPES = {"bfloat16": "V2"}  # what .npy makes of a type that numpy does not have


class SeveralSizes(InputError):
    """Arrays give one name several sizes."""


class Spec(Protocol):
    """Name, shape and element type of an input; a dimension may be a name."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Sequence[int | str]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def check_inputs(
    specs: Sequence[Spec],
    arrays: Mapping[str, object],
    dims: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """The arrays as the program takes them: in order, C-contiguous, aligned.

    arrays: numpy arrays of exactly the wanted element type and shape, or anything
    with `__array__` or `__dlpack__`; lists and numbers where no value changes.
    dims: what dimensions are bound to.
    Raises InputError for the first array that does not fit.
    """
    if not hasattr(arrays, "keys"):
        raise InputError(
            f"are a {type(arrays).__name__}",
            where="inputs",
            hint=f"give a dict: the model takes {listing(specs)}",
        )
    names = {spec.name: None for spec in specs}
    if names.keys() != arrays.keys():
        missing = [name for name in names if name not in arrays]
        extra = [str(name) for name in arrays if name not in names]
        said = [f"{', '.join(missing)} is missing"] if missing else []
        said += [f"{', '.join(extra)} is not one of them"] if extra else []
        raise InputError(
            " and ".join(said), where="inputs", hint=f"the model takes {listing(specs)}"
        )
    sizes = {name: (number, "dims") for name, number in (dims or {}).items()}
    return {spec.name: check_input(spec, arrays[spec.name], sizes) for spec in specs}


def listing(specs: Sequence[Spec]) -> str:
    return ", ".join(f"{s.name} ({signature(s.dtype, s.shape)})" for s in specs)


def signature(dtype: np.dtype[Any], shape: Sequence[int | str]) -> str:
    """Element type and shape for a message: float32 1x384, int64 scalar."""
    return f"{dtype.name} {'x'.join(str(d) for d in shape) or 'scalar'}"


def check_input(spec: Spec, value: object, sizes: dict[str, tuple[int, str]]) -> Array:
    """One array.  sizes: what named dimensions are bound to, or were in earlier inputs,
    and where."""
    if type(value) is np.ndarray and value.shape == spec.shape:
        known = value.dtype == spec.dtype and value.flags.c_contiguous
        if known and value.flags.aligned:  # most calls: the rest takes microseconds
            return value
    where = f"input {spec.name}"
    array = converted(spec, value, where)
    wanted = signature(spec.dtype, spec.shape)
    if array.dtype != spec.dtype:
        if array.dtype.newbyteorder("=") == spec.dtype:
            raise InputError(
                "is big-endian",
                where=where,
                hint="convert it with array.astype(array.dtype.newbyteorder('='))",
            )
        raise InputError(
            f"is {signature(array.dtype, array.shape)}, the model wants {wanted}",
            where=where,
            hint=f"convert it with array.astype({spec.dtype.name!r})",
        )
    fits = len(array.shape) == len(spec.shape) and all(
        not isinstance(want, int) or want == size
        for want, size in zip(spec.shape, array.shape, strict=False)
    )
    if not fits:
        raise InputError(
            f"is {signature(array.dtype, array.shape)}, the model wants {wanted}",
            where=where,
            hint="reshape it"
            if len(array.shape) != len(spec.shape)
            else "reshape it, or bind the model's dimensions to it",
        )
    for dim, size in zip(spec.shape, array.shape, strict=True):
        if isinstance(dim, str) and sizes.setdefault(dim, (size, where))[0] != size:
            before = "{} in {}".format(*sizes[dim])
            kind = InputError if sizes[dim][1] == "dims" else SeveralSizes
            raise kind(
                f"dimension {dim} is {size} here and {before}",
                where=where,
                hint="give inputs that agree",
            )
    return np.require(array, requirements=["C", "A"])


def converted(spec: Spec, value: object, where: str) -> Array:
    """The value as an array of its own type; lists and numbers of the wanted one."""
    if isinstance(value, np.ma.MaskedArray):
        raise InputError("is masked", where=where, hint="fill it: array.filled(0)")
    if isinstance(value, np.ndarray) or hasattr(value, "__array__") or is_shared(value):
        try:
            array = (
                shared_array(value, where) if is_shared(value) else np.asarray(value)
            )
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            if can_share(value):  # it may be bfloat16, which numpy does not have
                return shared_array(value, where)
            raise InputError(
                f"cannot become an array: {str(error).splitlines()[0]}", where=where
            ) from None
        if array.dtype.str.lstrip("|") == EXTRA_TYPES.get(spec.dtype.name):
            return array.view(spec.dtype)
        return array
    if not isinstance(value, bool | int | float | complex | list | tuple):
        raise InputError(
            f"is a {type(value).__name__}", where=where, hint="give a numpy array"
        )
    return exact(spec, value, where)


def is_shared(value: Any) -> bool:
    """Whether an array of another library shows its memory by DLPack alone."""
    return hasattr(value, "__dlpack__") and not hasattr(value, "__array__")


def exact(spec: Spec, value: object, where: str) -> Array:
    """A list or number in the wanted type, if no value changes on the way."""
    try:
        given = np.asarray(value)
    except (ValueError, OverflowError):
        raise InputError(
            "is a list of rows of different lengths", where=where, hint="pad it"
        ) from None
    if given.size == 0:
        return given.astype(spec.dtype)
    numbers = np.asarray(value, dtype=object)
    if given.dtype.kind in "fO" and all(type(x) is int for x in numbers.flat):
        made = whole_numbers(numbers, spec.dtype)
    else:
        made = same_values(given, spec.dtype)
    if made is None:
        raise InputError(
            f"holds values that are not exactly {spec.dtype.name}",
            where=where,
            hint=f"give np.array(..., dtype={spec.dtype.name!r}) to round them",
        )
    return made


def whole_numbers(numbers: Array, wanted: np.dtype[Any]) -> Array | None:
    """Python's integers in the wanted type, None if that has not all of them.

    numpy takes those of int64 and uint64 together for floats, larger ones for objects.
    """
    try:
        with np.errstate(all="ignore"):
            made = numbers.astype(wanted)
    except OverflowError:
        return None
    same = all(a == b for a, b in zip(made.ravel().tolist(), numbers.flat, strict=True))
    return made if same else None


def same_values(given: Array, wanted: np.dtype[Any]) -> Array | None:
    """An array in the wanted type, None if a value would change."""
    if not is_castable(given.dtype, wanted):
        return None
    with np.errstate(all="ignore"):
        made = given.astype(wanted)
        back = made.astype(given.dtype)
    same = np.array_equal(back, given, equal_nan=given.dtype.kind in "fc")
    # 2**64 - 1 and -1 are the same bits, so the way back alone proves nothing.
    unsigned = given.dtype.kind == "u" or wanted.kind == "u"
    sign_kept = not (unsigned and ((made < 0) != (given < 0)).any())
    return made if same and sign_kept else None


def is_castable(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether values of a type may be values of another: numbers, or both bool."""
    if given.kind == "b" or wanted.kind == "b":
        return given.kind == wanted.kind
    return given.kind in "iuf" or given.kind == wanted.kind == "c"


def given_shapes(
    shapes: Mapping[str, Any] | None, specs: Sequence[Spec]
) -> dict[str, tuple[int, ...]] | None:
    """The shapes of some inputs as tuples of whole numbers.  Raises InputError."""
    if shapes is None:
        return None
    if not isinstance(cast(object, shapes), Mapping):
        reason = f"are a {type(shapes).__name__}"
        raise InputError(reason, where="shapes", hint='give a dict: {"x": (2, 3)}')
    extra = [str(x) for x in shapes if x not in {spec.name for spec in specs}]
    if extra:
        reason = f"{', '.join(extra)} is no input"
        hint = f"the model takes {listing(specs)}"
        raise InputError(reason, where="shapes", hint=hint)
    return {name: _sizes(name, shape) for name, shape in shapes.items()}


def _sizes(name: str, shape: object) -> tuple[int, ...]:
    reason, hint = f"{shape!r} is no shape", "give whole numbers, as (2, 3)"
    if (of_array := getattr(shape, "shape", None)) is not None:
        reason = f"a {type(shape).__name__} is no shape"
        hint = f"give its shape: {of_array}"
        raise InputError(reason, where=f"input {name}", hint=hint)
    try:
        found = tuple(map(index, cast(Iterable[Any], shape)))
    except TypeError:
        raise InputError(reason, where=f"input {name}", hint=hint) from None
    if min(found, default=0) < 0:
        hint = "a size is at least 0"
        raise InputError(reason, where=f"input {name}", hint=hint)
    return found
