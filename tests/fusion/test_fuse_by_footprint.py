"""Windows of windows are one kernel where that pays; the numbers, drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.parser import parse_model

import nanoloom
from nanoloom.compiler import Report, partition_model
from nanoloom.cost.profit import Profit, profit
from nanoloom.fusion import pair_losses
from nanoloom.fusion.fusion_plan import FUSED
from nanoloom.kernels.program import Kernel
from nanoloom.nest.nest import LoopNest
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import StoreAt
from nanoloom.target import Target, by_name
from nanoloom.target.facts import Cache
from tests.kernels.test_blocks import levels
from tests.linalg.bounds import sample
from tests.vector.checks import check, passes
from tests.vector.kernel_harness import Array, shared_cache

TARGET = by_name("x86-64-v3")


@dataclass(frozen=True)
class Drawn:
    """Two or three pools one behind the other, and what may stand behind them."""

    x: Array
    pools: tuple[tuple[str, dict[str, Any]], ...]
    follows: bool

    @classmethod
    def of(cls, seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        shape = tuple(int(n) for n in rng.integers((1, 1, 14, 14), (3, 40, 60, 60)))

        def drawn() -> tuple[str, dict[str, Any]]:
            window = [int(n) for n in rng.integers(1, 5, 2)]
            pads = [int(rng.integers(0, n)) for n in (*window, *window)]
            words = {"kernel_shape": window, "pads": pads}
            words["strides"] = [int(n) for n in rng.integers(1, 3, 2)]
            if rng.random() < 0.4:
                return "AveragePool", {**words, "count_include_pad": 1}
            return "MaxPool", words

        pools = tuple(drawn() for _ in range(int(rng.integers(2, 4))))
        return cls(sample(seed, shape, "float32"), pools, bool(rng.random() < 0.4))

    def model(self) -> onnx.ModelProto:
        names = ["x", *(f"t{n}" for n in range(len(self.pools) - 1))]
        names.append("m" if self.follows else "y")
        nodes = [
            helper.make_node(op, [before], [after], **words)
            for (op, words), before, after in zip(
                self.pools, names, names[1:], strict=False
            )
        ]
        if self.follows:
            nodes.append(helper.make_node("Neg", ["m"], ["y"]))
        graph = helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.x.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        )  # fmt: skip
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


def small(target: Target) -> Target:
    """With a cache that images of a test outweigh."""
    return replace(target, caches=Cache(16 * 1024, 32 * 1024))


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(10))
def test_numbers(seed: int) -> None:
    """Whatever is joined, for caches that hold all of it and for small ones."""
    drawn = Drawn.of(seed)
    model = drawn.model()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    right = np.asarray(session.run(None, {"x": drawn.x})[0])
    size = np.full_like(right, abs(drawn.x).max())
    target = by_name(levels()[seed % len(levels())])
    for each in (target, small(target)):
        options = CompileOptions(each)
        program = nanoloom.compile(model, cache=shared_cache(), options=options)
        (got,) = program({"x": drawn.x}).values()
        check(got, right, 3 * 4 * 4 * len(drawn.pools), size)
        assert not passes(got, np.roll(right, 1), 48, size) or right.size < 2


def kernels(words: str, outputs: str = "float[a, b, c, d] y") -> list[Kernel]:
    """Of two pools one behind the other, without those of borders."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[1, 64, 61, 53] x) => ({outputs}) {{
        t = {words}(x)
        y = {words}(t)
    }}"""
    program = nanoloom.compile(parse_model(text), options=CompileOptions(TARGET))
    model = program.source.entry(program.static_shapes(), {})
    made = partition_model(model, CompileOptions(TARGET), Report())
    return [x for x in made.kernels.values() if x.root != "opaque"]


STEPS = "AveragePool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>"
PASSES = "MaxPool<kernel_shape = [5, 5], pads = [2, 2, 2, 2]>"  # rows, then columns


@pytest.mark.parametrize(("words", "count"), [(STEPS, 1), (PASSES, 2)])
def test_the_plan_and_its_schedule(words: str, count: int) -> None:
    """What a part makes lies inside of the border of the next one's windows, where
    these do not make the border at their tiles."""
    found = kernels(words)
    assert len(found) == count  # of two pools, or of four passes
    for kernel in found:
        (fusion,) = kernel.nest.plan
        assert kernel.text.count(FUSED) == 1
        assert kernel.nest.stage(fusion.consumer).is_reduction
        assert fusion.recompute > 0  # of loops in steps of one: windows overlap
        chosen = choose(kernel.nest, TARGET)
        stored = [x.where for x in chosen.directives if isinstance(x, StoreAt)]
        assert "parts" in chosen.reason and ("padded" in stored) == (count == 2)


def test_what_is_read_elsewhere_stays_apart() -> None:
    assert len(kernels(STEPS, "float[a, b, c, d] y, float[e, f, g, h] t")) == 2


def test_a_block_that_repeats_is_asked_about_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What decides is the nest of two groups, which is the same in every block."""
    asked: list[object] = []

    def counted(apart: LoopNest, *others: Any) -> Profit:
        asked.append(apart)
        return profit(apart, *others)

    monkeypatch.setattr(pair_losses, "profit", counted)
    branches = ("Neg", "Abs", "Exp", "Sin")
    lines = [
        f"a{n} = {word}(x) b{n} = {STEPS}(a{n}) c{n} = {STEPS}(b{n})"
        for n, word in enumerate(branches)
    ]
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[1, 64, 61, 53] x) => (float[a, b, c, d] y) {{
        {" ".join(lines)}
        y = Concat<axis = 1>({", ".join(f"c{n}" for n in range(len(branches)))})
    }}"""
    program = nanoloom.compile(parse_model(text), options=CompileOptions(TARGET))
    model = program.source.entry(program.static_shapes(), {})
    made = partition_model(model, CompileOptions(TARGET), Report())
    joined = [kernel for kernel in made.kernels.values() if kernel.nest.plan]
    assert joined and 0 < len(asked) < len(branches)
