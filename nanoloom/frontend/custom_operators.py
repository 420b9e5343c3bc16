"""Operators that functions of a user stand for, by domain and name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir

    from nanoloom.frontend.microsoft.replacement import Replacement

    Made = ir.Value | Sequence[ir.Value | None]
    Expansion = Callable[[Replacement], Made]


@dataclass(frozen=True)
class CustomOperator:
    """expand: to nodes of ONNX's operators; None where the node stays.

    version: decides, with the model, which program is remembered.
    """

    domain: str
    name: str
    expand: Expansion | None
    version: str


REGISTERED: dict[tuple[str, str], CustomOperator] = {}


def register(
    domain: str, name: str, expand: Expansion | None, version: str | None
) -> None:
    """version: None for a function that no other process can know."""
    made = token_hex(16) if version is None else f"version {version}"
    REGISTERED[domain, name] = CustomOperator(domain, name, expand, made)


def registered_versions() -> list[str]:
    """Of all operators of this process, in one order."""
    found = sorted(REGISTERED.items())
    return [f"{domain}::{name} {x.version}" for (domain, name), x in found]
