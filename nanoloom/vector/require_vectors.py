"""Whether a generic on buffers is what was said of it, when it becomes loops."""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.ir.linalg_query import Op
from nanoloom.ir.loop_nest import STAGE
from nanoloom.nest.extent import Lanes
from nanoloom.vector.store_at import is_kept
from nanoloom.vector.vector_plan import plan_of
from nanoloom.vector.vectorize import INIT, SCALAR


def require_taken(op: Op) -> None:
    """Error if a generic, which nothing has taken, is to be in registers."""
    if is_kept(op):
        raise Error(
            "a stage is to be stored in registers, and what reads it cannot take it "
            "from there"
        )
    if INIT in op.operation.attributes:
        raise Error(
            "a sum is to begin with what its reader adds, and is not computed at the "
            "register tile of that"
        )


def require_vectors(op: Op, lanes: Lanes | None) -> None:
    """Error if a stage is to have vectors and has none.

    lanes: those that it has, None for plain loops.
    """
    plan, words = plan_of(op), op.operation.attributes
    if plan is None or SCALAR in words or STAGE not in words or lanes == plan.lanes:
        return
    name = words[STAGE].value  # type: ignore[attr-defined] - a string
    raise Error(
        f"{name} has no vectors of {plan.lanes} along its axis {plan.axis}: what it "
        "calls, combines, reads or writes there is single numbers",
        hint=f"leave its vectors out, or say Scalarize({name!r})",
    )
