"""What can be added to a target's name behind a `+`, and what it brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.target.by_name import TARGETS, by_name
from nanoloom.target.facts import Target

BRINGS: Mapping[str, Mapping[str, str]] = {
    "x86_64": {
        "bf16": "avx512bf16",
        "vnni": "avx512vnni; avxvnni where it cannot be",
        "amx": "amx-bf16 and amx-int8",
        "amx-bf16": "tiles, and products of bf16 in them",
        "amx-int8": "tiles, and products of bytes in them",
        "amx-fp16": "tiles, and products of f16 in them",
        "amx-tile": "tile registers alone",
        "avx512bf16": "products of pairs of bf16",
        "avx512vnni": "products of fours of bytes",
        "avxvnni": "products of fours of bytes, of 256 bits",
        "avxvnniint8": "the same of any signs",
        "avxvnniint16": "products of pairs of 16 bits",
        "avxneconvert": "loads that convert bf16 and f16",
        "avxifma": "products of 52 bits, of 256 bits",
        "avx512ifma": "products of 52 bits",
        "avx512fp16": "arithmetic of f16",
        "avx10.2": "products of pairs of f16",
        "avx512vbmi": "permutations of bytes",
        "avx512vbmi2": "shifts over pairs, packed bytes",
        "avx512bitalg": "counts of ones in bytes",
        "avx512vpopcntdq": "counts of ones in words",
        "avx512vp2intersect": "numbers in common of two vectors",
        "fma": "multiply-adds",
        "f16c": "conversions of f16",
        "gfni": "arithmetic of Galois fields",
        "prefetchi": "prefetches of code",
    },
    "aarch64": {
        "dotprod": "products of fours of bytes",
        "i8mm": "products of bytes, 2 x 2 at once",
        "f32mm": "products of f32, 2 x 2 at once",
        "bf16": "products of bf16",
        "fullfp16": "arithmetic of f16",
        "fp16fml": "products of f16 added in f32",
        "sve": "vectors of 128 to 2048 bits",
        "sve2": "the same with more operations",
        "sve2p1": "the same with products of pairs of f16",
        "sme": "outer products in tiles",
    },
    "riscv64": {
        "v": "vectors of 128 bits and more",
        "zvl128b": "vectors of 128 bits and more",
        "zvl256b": "vectors of 256 bits and more",
        "zvl512b": "vectors of 512 bits and more",
        "zvl1024b": "vectors of 1024 bits and more",
        "zvfh": "vectors of f16",
        "zvfhmin": "vectors' conversions of f16",
        "zvfbfmin": "vectors' conversions of bf16",
        "zvfbfwma": "products of bf16 added in f32",
        "zba": "sums of addresses",
        "zbb": "minima, rotations, counts of ones",
        "zbs": "single bits",
    },
    "powerpc64le": {
        "power9-vector": "the vectors of POWER9",
        "power10-vector": "the vectors of POWER10",
    },
}


@dataclass(frozen=True)
class Feature:
    """A feature behind a `+`.  to: names of the table that it can be added to, those
    left out that have it; bits: of the vectors that it needs, 0 for any."""

    arch: str
    name: str
    brings: str
    to: tuple[str, ...]
    bits: int


def features() -> tuple[Feature, ...]:
    """Every feature of every instruction set, in the order of BRINGS."""
    return tuple(
        _addition(arch, name, brings)
        for arch, features in BRINGS.items()
        for name, brings in features.items()
    )


def _addition(arch: str, name: str, brings: str) -> Feature:
    rows = [target for target in TARGETS if target.arch == arch]
    made = [(target, _with(target, name)) for target in rows]
    able = min(target.vector.bits for target, other in made if other)
    least = min(target.vector.bits for target in rows)
    to = tuple(str(target) for target, other in made if other not in (None, target))
    return Feature(arch, name, brings, to, able if able > least else 0)


def _with(target: Target, name: str) -> Target | None:
    """The target with a feature, the same one if it has it, None if it cannot."""
    try:
        return by_name(f"{target}+{name}")
    except Error:
        return None
