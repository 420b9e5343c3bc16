"""Targets: facts about CPUs, passed in.  `host.py` alone looks at this machine."""

from __future__ import annotations

from nanoloom.target.by_name import TARGETS, by_name
from nanoloom.target.facts import Cache, MatrixUnit, Target, VectorUnit

__all__ = [
    "TARGETS",
    "Cache",
    "MatrixUnit",
    "Target",
    "VectorUnit",
    "by_name",
]
