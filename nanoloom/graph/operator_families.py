"""Operators that are alike to every part of the compiler."""

from __future__ import annotations

from nanoloom.graph.operator_spec import Family
from nanoloom.graph.operator_specs import named

ELEMENTWISE = named(lambda spec: spec.family is Family.ELEMENTWISE)
REDUCTIONS = named(lambda spec: spec.family is Family.REDUCTION)
