"""Compiled kernels come out of the cache as they went in."""

from __future__ import annotations

from nanoloom.binary.kernel import CompiledKernel
from nanoloom.schedule.packing import Pack


def test_bytes_and_back() -> None:
    packings = (Pack(1, (), 1, (0,), 64), Pack(3, (0,), 2, (1, 3), 32, 2))
    kernel = CompiledKernel(
        b"\x7fELF\n\x00\n", (12, 0, 3), packings, True, (0, 64, 128)
    )
    assert CompiledKernel.from_bytes(kernel.to_bytes()) == kernel
