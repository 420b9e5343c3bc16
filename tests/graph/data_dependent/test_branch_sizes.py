"""If whose condition only the numbers decide, with branches of other sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import nanoloom
from tests.kernels.repeats.ended_loops import HEAD, reference
from tests.vector.kernel_harness import shared_cache

TYPES = {"float": np.float32, "int32": np.int32, "int64": np.int64}
MOST = 4  # of a size


@dataclass(frozen=True)
class Drawn:
    """Outputs of one type: a part of x, or x twice, in each branch.

    begins, ends: along the axes, None for x twice along the first one.
    """

    dtype: str
    shape: tuple[int, ...]
    parts: tuple[tuple[list[int], list[int]] | None, ...]
    open: bool

    @property
    def model(self) -> onnx.ModelProto:
        rank = len(self.shape)
        sizes = ["rows" if self.open else str(self.shape[0]), *map(str, self.shape[1:])]
        made = ",".join(f"d{i}" for i in range(rank))
        bodies = [branch(f"p{i}", part) for i, part in enumerate(self.parts)]
        inner = f"""
            small = Less(s, one)
            y1 = If(small) <then_branch = t1 () => (p1) {{ {bodies[1]} }},
                            else_branch = e1 () => (p2) {{ {bodies[2]} }}>"""
        return onnx.parser.parse_model(f"""{HEAD}
        g (float s, {self.dtype}[{",".join(sizes)}] x) => ({self.dtype}[{made}] y,
            {self.dtype}[{made}] twice, {self.dtype} sum, int64[{rank}] shape)
        <float zero = {{0}}, float one = {{1}}> {{
          c = Greater(s, zero)
          y = If(c) <then_branch = t () => (p0) {{ {bodies[0]} }},
                     else_branch = e () => (y1) {{ {inner} }}>
          twice = Add(y, y)
          sum = ReduceSum<keepdims = 0>(y)
          shape = Shape(twice)
        }}""")

    def feeds(self, random: np.random.Generator, s: float) -> dict[str, np.ndarray]:
        shape = self.shape
        if self.open:
            shape = (int(random.integers(1, 9)), *shape[1:])
        x = random.integers(1, 9, shape).astype(TYPES[self.dtype])
        return {"s": np.array(s, np.float32), "x": x}


def branch(name: str, part: tuple[list[int], list[int]] | None) -> str:
    if part is None:
        return f"{name} = Concat<axis = 0>(x, x)"
    begins, ends = (", ".join(map(str, each)) for each in part)
    return (
        f"b{name} = Constant<value_ints = [{begins}]>()"
        f" e{name} = Constant<value_ints = [{ends}]>()"
        f" {name} = Slice(x, b{name}, e{name})"
    )


def drawn(seed: int) -> Drawn:
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(1, MOST + 1, random.integers(1, 5)))
    parts: list[tuple[list[int], list[int]] | None] = []
    for _ in range(3):
        begins = [int(random.integers(0, n)) for n in shape]
        ends = [
            int(random.integers(b, n + 1)) for b, n in zip(begins, shape, strict=True)
        ]
        parts.append(None if random.integers(4) == 0 else (begins, ends))
    dtype = str(random.choice([*TYPES]))
    is_open = bool(random.integers(2))
    if is_open:  # a begin of its own is another limit of the size
        kept = [None if p is None else ([0, *p[0][1:]], p[1]) for p in parts]
        parts = kept
    return Drawn(dtype, shape, tuple(parts), is_open)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(10))
def test_any_sizes(seed: int) -> None:
    """Of one program; none among them, and a branch in a branch."""
    case = drawn(seed)
    program = nanoloom.compile(case.model, threads=1, cache=shared_cache())
    random = np.random.default_rng(seed)
    shapes: set[tuple[int, ...]] = set()
    for s in (1.5, -1, 0.5, -2, 0, 3):
        feeds = case.feeds(random, s)
        wanted = reference(case.model, feeds)
        for found, right in zip(program(feeds).values(), wanted, strict=True):
            assert found.shape == right.shape
            np.testing.assert_array_equal(found, right)
        shapes.add(feeds["x"].shape)
    assert len(program.variants) <= len(shapes)


def test_in_a_library(tmp_path: Path) -> None:
    """With room for the larger branch."""
    case = Drawn(
        "float", (4, 3), (None, ([0, 1], [2, 3]), ([0, 0], [4, 0])), open=False
    )
    program = nanoloom.compile(case.model, threads=1, cache=shared_cache())
    with nanoloom.load(program.save(tmp_path / "model.so"), threads=1) as model:
        assert model.outputs[0].shape == ("..8", "..3")
        for s in (1, -1, 0.5):
            feeds = case.feeds(np.random.default_rng(3), s)
            for found, right in zip(
                model(feeds).values(), reference(case.model, feeds), strict=True
            ):
                np.testing.assert_array_equal(found, right)


def test_in_a_loop() -> None:
    """Each trip takes the branch that its own numbers ask for."""
    text = f"""{HEAD} g (float[4] x) => (float y) {{
      most = Constant<value_int = 6>() go = Constant<value = bool {{1}}>()
      zero = Constant<value_float = 0.0>()
      y = Loop(most, go, zero) <body = step (int64 i, bool k, float t) => (k2, u) {{
        k2 = Identity(k)
        limit = Constant<value_float = 9.0>()
        c = Less(t, limit)
        z = If(c) <then_branch = a () => (p) {{ p = Concat<axis = 0>(x, x) }},
                   else_branch = b () => (q) {{ q = Neg(x) }}>
        s = ReduceSum<keepdims = 0>(z)
        u = Add(t, s)
      }}>
    }}"""
    program = nanoloom.compile(onnx.parser.parse_model(text), cache=shared_cache())
    x = np.array([1, 2, -1, 0.5], np.float32)
    total = 0.0
    for _ in range(6):
        total += 5 if total < 9 else -2.5
    assert program({"x": x})["y"] == total


def test_a_condition_that_an_input_says_has_a_program_for_each_branch() -> None:
    """Neither computes for the other's sizes."""
    text = f"""{HEAD} g (bool c, float[4,3] x) => (float[m,3] y) {{
      y = If(c) <then_branch = a () => (p) {{ p = Concat<axis = 0>(x, x) }},
                 else_branch = b () => (q) {{ q = Neg(x) }}>
    }}"""
    program = nanoloom.compile(onnx.parser.parse_model(text), cache=shared_cache())
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for taken, right in ((True, np.concatenate([x, x])), (False, -x)):
        found = program({"c": np.array(taken), "x": x})["y"]
        np.testing.assert_array_equal(found, right)
    assert len(program.variants) == 2
