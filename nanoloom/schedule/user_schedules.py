"""A schedule that a user gives in place of the one chosen for a kernel."""

from __future__ import annotations

import fnmatch
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nanoloom.errors import Error, InternalError, some_of
from nanoloom.ir.mlir import ir
from nanoloom.schedule.dataflow.dataflow import Dataflow
from nanoloom.schedule.dataflow.recommended import Recommended
from nanoloom.schedule.language import Schedule

if TYPE_CHECKING:  # a worker that makes kernels reads no models
    from nanoloom.kernels.program import Kernel
    from nanoloom.options import CompileOptions

SUMS = "contraction_*"  # kernels that add up products


def given_schedule(kernel: Kernel, options: CompileOptions) -> Schedule | str | None:
    """The user's schedule for a kernel, or the script, if there is one.

    Raises Error for anything else.
    """
    for pattern, given in given_for(kernel.name, options):
        if isinstance(given, (Schedule, str)):
            return given
        if isinstance(given, (Dataflow, Recommended)):
            with naming_schedule(kernel.name, given=True):
                return given.schedule_of(kernel.nest, options.target)
        raise Error(f"a schedule for {pattern} is a {type(given).__name__}")
    return None


def given_for(kernel: str, options: CompileOptions) -> list[tuple[str, object]]:
    """What the user gives for a kernel's name, by its pattern; the first rules."""
    return [x for x in options.schedules if fnmatch.fnmatchcase(kernel, x[0])]


def require_kernels(names: Sequence[str], options: CompileOptions) -> None:
    """Raise Error, with the names that come near, for a schedule of no kernel.

    And for a dataflow where no layer has a sum.
    """
    for pattern, given in options.schedules:
        flows = isinstance(given, Dataflow | Recommended)
        if flows and not fnmatch.filter(names, SUMS):
            reason = (
                "a dataflow is for layers that add up products, and each result of "
                "this model's layers is at most one product"
            )
            raise Error(reason, hint="compile it without --dataflow")
        if not fnmatch.filter(names, pattern):
            what = "dataflow of sums of products" if flows else "schedule"
            reason = f"a {what} is for {pattern}, and no kernel has such a name"
            raise Error(reason, hint=some_of(names, pattern))


@contextmanager
def naming_schedule(kernel: str, *, given: bool) -> Generator[None]:
    """Errors of a script say whose it is; so does what MLIR refuses behind a user's.

    kernel: its name.  given: whether the script is the user's.  An error of a schedule
    that nanoloom chose itself is a bug of nanoloom: nobody else can mend it.
    """
    whose = f"schedule of kernel {kernel}"
    try:
        yield
    except Error as error:
        if not given:
            raise InternalError(
                f"this is a bug of nanoloom (its own schedule: {error.reason}), "
                "not of your model",
                where=f"kernel {kernel}",
                hint="report it with the model",
            ) from error
        where = f"{whose}, {error.where}" if error.where else whose
        raise Error(error.reason, where=where, hint=error.hint) from None
    except ir.MLIRError as error:
        if not given:
            raise
        reason = "what the script leaves cannot be compiled: " + first_line(error)
        raise Error(reason, where=whose) from error


def first_line(error: ir.MLIRError) -> str:
    """The first thing that MLIR says against something."""
    found = [d.message for d in error.error_diagnostics]
    return found[0] if found else error.message
