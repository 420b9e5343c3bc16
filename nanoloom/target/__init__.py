"""Targets: facts about CPUs, passed in.  `host.py` alone looks at this machine."""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.target import aarch64, riscv, x86
from nanoloom.target.facts import Cache, MatrixUnit, Target, VectorUnit

__all__ = ["TARGETS", "Cache", "MatrixUnit", "Target", "VectorUnit", "by_name"]

TARGETS = x86.TARGETS + aarch64.TARGETS + riscv.TARGETS
_BY_NAME = {target.name: target for target in TARGETS}


def by_name(name: str) -> Target:
    """The known target of this name.

    Raises:
        Error: there is none; the message lists the names that come near.
    """
    if target := _BY_NAME.get(name):
        return target
    import difflib  # only the message needs it

    near = difflib.get_close_matches(name.lower(), _BY_NAME, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "known: "
    raise Error(
        f"there is no target named {name!r}",
        hint=hint if near else hint + ", ".join(_BY_NAME),
    )
