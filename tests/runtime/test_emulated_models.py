"""Whole small models on every CPU: one file at all lengths, made of vectors.

An encoder of MiniLM's shape, a block of a ResNet and nsNet2 are one model, so that each
CPU has one executable; the demo's MiniLM runs with its trained weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import compose, helper, numpy_helper, parser

from examples.minilm import model as minilm
from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.emit import emit_stage
from nanoloom.inspect.differences import compare
from nanoloom.inspect.references import disturbed, open_reference
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import Machine, machine, run_emulated
from nanoloom_papers.reproduce.instruction_counts import Count, counted
from tests.c_libraries import lend
from tests.examples.test_minilm import BOUND, bert

Arrays = dict[str, np.ndarray]
MODELS = Path(__file__).parents[1] / "models"
SIZES = {"batch": 1, "sequence": 9, "frames": 5}
BLOCK = """
<ir_version: 8, opset_import: ["": 17]>
block (float[1, 24, 14, 14] image, float[40, 24, 3, 3] a, float[40] b,
       float[40, 40, 3, 3] c, float[40] d, float[40, 24, 1, 1] e)
   => (float[1, 40, 7, 7] f)
{
    h = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(image, a, b)
    r = Relu(h)
    s = Conv<pads = [1, 1, 1, 1]>(r, c, d)
    t = Conv<strides = [2, 2]>(image, e)
    u = Add(s, t)
    f = Relu(u)
}
"""
# One file runs at all lengths of a row.
LENGTHS = {
    "riscv64": ("",),
    "riscv64+v": (":vlen=128", ":vlen=256", ":vlen=512", ":vlen=1024"),
    "aarch64": ("",),
    "aarch64+sve": (":sve=128", ":sve=256", ":sve=512", ":sve=1024", ":sve=2048"),
    "aarch64+sve+sme": (":sme=128", ":sme=512", ":sme=2048"),
}
# Of x86, whose instructions nobody counts: what its loops are made of.
HERE = {"x86-64-v2": r"\bmulps\t.*%xmm", "x86-64-v3": r"\bvfmadd\d+ps\t.*%ymm"}


def block() -> onnx.ModelProto:
    """Two convolutions and the way around them, their weights in it."""
    made, random = parser.parse_model(BLOCK), np.random.default_rng(3)
    for info in list(made.graph.input)[1:]:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        array = random.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, info.name))
        made.graph.input.remove(info)
    return made


def joined() -> onnx.ModelProto:
    """Three models side by side."""
    made = block()
    for name in ("bge-small_opset17_torchscript", "nsnet2_opset17_torchscript"):
        other = compose.add_prefix(onnx.load(MODELS / f"{name}.onnx"), f"{name[:3]}.")
        graph = compose.merge_graphs(made.graph, other.graph, [])
        made = helper.make_model(
            graph, ir_version=8, opset_imports=list(made.opset_import)
        )
    return made


def inputs() -> Arrays:
    """Values of all inputs, four of nine tokens masked."""
    random = np.random.default_rng(4)
    tokens = SIZES["sequence"]
    return {
        "image": random.standard_normal((1, 24, 14, 14)).astype(np.float32),
        "bge.input_ids": random.integers(0, 97, (1, tokens)),
        "bge.attention_mask": (np.arange(tokens) < 5).astype(np.int64)[None],
        "bge.token_type_ids": np.zeros((1, tokens), np.int64),
        "nsn.features": random.standard_normal((1, SIZES["frames"], 13)).astype("f4"),
    }


def passes(
    got: Arrays, wanted: list[np.ndarray], others: list[list[np.ndarray]]
) -> list[bool]:
    """Whether every output is within what rounding may change."""
    return [
        compare(name, array, wanted[i], [other[i] for other in others]).passed
        for i, (name, array) in enumerate(got.items())
    ]


Judge = Callable[[Arrays], list[bool]]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Whether outputs are ONNX Runtime's, within a bound found by disturbing those."""
    folder, given = tmp_path_factory.mktemp("judge"), inputs()
    path = folder / "model.onnx"
    onnx.save(joined(), path)
    program = compile(path, dims=SIZES)
    bound = program.source.bound({n: x.shape for n, x in given.items()}, {})
    wanted = open_reference("ort", path, 1)(given)
    others = disturbed("ort", bound, folder, 1, given)
    return lambda got: passes(got, wanted, others)


def build(name: str, folder: Path) -> tuple[Program, Path]:
    """The models as an executable for a CPU."""
    cache, target = Cache(folder / "cache"), machine(name).target
    lend(target.arch, cache)
    options = CompileOptions(target)
    program = compile(joined(), dims=SIZES, options=options, cache=cache)
    return program, program.save(folder / "models", form="executable")


def counted_run(
    plugin: Path, where: Machine, built: tuple[Program, Path]
) -> tuple[Arrays, Count]:
    """Outputs, and what the process executed for them."""
    program, path = built
    given, words = inputs(), list[str]()
    for number, x in enumerate(program.inputs):
        np.save(path.with_name(f"in{number}.npy"), given[x.name])
        words.append(str(path.with_name(f"in{number}.npy")))
    made = {
        x.name: path.with_name(f"out{i}.npy") for i, x in enumerate(program.outputs)
    }
    words += [f"--out={file}" for file in made.values()]
    count = counted(plugin, where, path, [*words, "--threads=1"])
    return {name: np.load(file) for name, file in made.items()}, count


@pytest.mark.drawn(one_in=5, kind=lambda name: "+" in name)
@pytest.mark.parametrize("name", LENGTHS)
def test_one_file_is_right_at_every_length(
    name: str, judge: Judge, plugin: Path, tmp_path: Path
) -> None:
    """Vectors are executed where there are some, and fewer where they are longer."""
    built, counts = build(name, tmp_path), list[Count]()
    for length in LENGTHS[name]:
        got, count = counted_run(plugin, machine(name + length), built)
        counts.append(count)
        assert judge(got) == [True] * 3, length
        for number, (output, array) in enumerate(got.items()):
            assert not judge(got | {output: 0 * array})[number]
    if name == "riscv64":
        assert counts[0].vectors == 0
        return
    # Of a whole process, which reads files: fewer vectors are a smaller share of it.
    assert all(count.vectors > 0.18 * count.all for count in counts)
    assert counts == sorted(counts, key=lambda count: -count.all)


@pytest.mark.parametrize("name", HERE)
def test_levels_of_this_machine(name: str, judge: Judge, tmp_path: Path) -> None:
    program, path = build(name, tmp_path)
    given = inputs()
    kinds = {x.name: x.dtype for x in program.outputs}
    where, order = machine(name), [given[x.name] for x in program.inputs]
    assert judge(run_emulated(where, path, order, kinds)) == [True] * 3
    texts, options = list[str](), CompileOptions(where.target)
    alone = onnx_ir.from_proto(block())
    emit_stage(alone, "asm", options, lambda *given: texts.append(given[-1]))
    assert re.search(HERE[name], "".join(texts))


@dataclass(frozen=True)
class Demo:
    """MiniLM, three tokens, and their embedding by BERT in float64."""

    path: Path
    given: list[np.ndarray]
    exact: np.ndarray


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    files = minilm.package_files()
    path = minilm.build(tmp_path_factory.mktemp("demo") / "minilm.onnx", files)
    tokens = np.array([[101, 7592, 102]])
    given = [tokens, np.ones_like(tokens), np.zeros_like(tokens)]
    return Demo(path, given, bert(files, *given))


@pytest.mark.drawn(one_in=3)
@pytest.mark.parametrize(
    "spec", ["riscv64+v:vlen=256", "aarch64+sve+sme:sme=512", "x86-64-v3"]
)
def test_the_demo(spec: str, demo: Demo, tmp_path: Path) -> None:
    """MiniLM's trained weights against BERT in float64: the embedding of a sentence."""
    cache, where = Cache(tmp_path / "cache"), machine(spec)
    lend(where.target.arch, cache)
    dims = {"batch": 1, "sequence": demo.given[0].shape[1]}
    options = CompileOptions(where.target)
    program = compile(demo.path, dims=dims, options=options, cache=cache)
    file = program.save(tmp_path / "minilm", form="executable")
    kinds = {x.name: x.dtype for x in program.outputs}
    given = [demo.given[minilm.INPUTS.index(x.name)] for x in program.inputs]
    (got,) = run_emulated(where, file, given, kinds).values()
    assert np.abs(got - demo.exact).max() <= BOUND
    assert not np.abs(0 * got - demo.exact).max() <= BOUND
