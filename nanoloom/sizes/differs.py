"""What stops a model from having sizes that are known only at run time."""

from __future__ import annotations


class Differs(Exception):
    """Samples of a model differ otherwise than in sizes; says in what."""
