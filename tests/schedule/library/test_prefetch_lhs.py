"""Images that outweigh the second-level cache come before they are read."""

from __future__ import annotations

from dataclasses import replace

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import Prefetch
from nanoloom.target import by_name
from nanoloom.target.facts import Target
from tests.nest.nests import matmul
from tests.schedule.library.test_image_rows import layer

TARGET = by_name("znver4")  # 1 MiB


def ahead(nest: LoopNest, target: Target = TARGET) -> list[int]:
    """How many steps of the sum the first argument comes ahead."""
    words = choose(nest, target).directives
    found = [word for word in words if isinstance(word, Prefetch)]
    return [word.ahead for word in found if word.argument == 0]


def of_floats(nest: LoopNest) -> LoopNest:
    (stage,) = nest.stages
    reads = tuple(replace(read, element="f32") for read in stage.reads)
    buffers = tuple(replace(each, element="f32") for each in nest.buffers)
    return replace(nest, buffers=buffers, stages=(replace(stage, reads=reads),))


def test_a_large_image_comes_a_row_ahead() -> None:
    assert ahead(of_floats(layer(56, 56, 128, 128))) == [3 * 128]
    assert ahead(of_floats(layer(14, 14, 128, 128))) == []
    low = by_name("x86-64-v3")  # tiles of few rows
    assert ahead(of_floats(layer(56, 56, 128, 128)), low) == []


def test_rows_of_a_product_come_a_tile_ahead() -> None:
    assert ahead(matmul(3136, 256, 32)) == [256]
    assert ahead(matmul(3136, 8, 32)) == []
