"""Half-precision conversions on a CPU that has no instruction for them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from nanoloom.binary.objects import emit
from nanoloom.binary.shared import write_in_process
from nanoloom.binary.table import Buffer, ProgramTable, Step
from nanoloom.cache import Cache
from nanoloom.interface.tensor import Element, Space, Tensor
from nanoloom.llvm import float_literals
from nanoloom.runtime.library import Library
from tests.runtime.native import TRIPLE

KERNEL = """
define void @convert(ptr %buffers, i64 %begin, i64 %end, ptr %scratch) {{
  %in = load ptr, ptr %buffers
  %at1 = getelementptr ptr, ptr %buffers, i64 1
  %out = load ptr, ptr %at1
  br label %head
head:
  %i = phi i64 [ %begin, %0 ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %p = getelementptr {source}, ptr %in, i64 %i
  %q = getelementptr {target}, ptr %out, i64 %i
  %x = load {source}, ptr %p
  %y = {operation} {source} %x to {target}
  store {target} %y, ptr %q
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""
LLVM_NAMES = {
    Element.F16: "half",
    Element.BF16: "bfloat",
    Element.F32: "float",
    Element.F64: "double",
}
MIDDLE = 1 + 2.0**-8  # between two neighbours in bf16


def converted(
    folder: Path, cache: Cache, values: np.ndarray, target: Element
) -> np.ndarray:
    """`values` as `target`, by a kernel for the plainest CPU of this architecture."""
    source = Element.of(values.dtype)
    wider = target.dtype.itemsize > source.dtype.itemsize
    text = KERNEL.format(
        source=LLVM_NAMES[source],
        target=LLVM_NAMES[target],
        operation="fpext" if wider else "fptrunc",
    )
    cpu = "x86-64" if TRIPLE.startswith("x86") else "generic"
    count = len(values)
    buffers = (Buffer(Space.INPUT), Buffer(Space.OUTPUT))
    table = ProgramTable(
        (Step("convert", count, buffers, "convert"),),
        0,
        0,
        (Tensor("x", source, (count,)),),
        (Tensor("y", target, (count,)),),
    )
    path = folder / f"{source.name}-{target.name}.so"
    code = emit(text, triple=TRIPLE, cpu=cpu)
    write_in_process([code], table, path, triple=TRIPLE, cache=cache)
    out = np.zeros(count, target.dtype)
    with Library(path).create(2) as instance:
        instance.run([values], [out])
    return out


def samples(dtype: type) -> np.ndarray:
    """Random bits, numbers near every exponent of a half, ties, and the edges."""
    random = np.random.default_rng(3)
    width = np.dtype(dtype).itemsize
    bits = np.frombuffer(random.bytes(width * 20_000), dtype)
    scales = 2.0 ** np.arange(-30, 20)
    near = np.outer(1 + random.integers(0, 4096, 40) / 4096, scales).ravel()
    tiny = np.outer(1 + random.integers(0, 512, 40) / 512, 2.0 ** np.arange(-136, -120))
    edges = [0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, 1e30, -1e30]
    edges += [3.3895e38, 2.0**-24, 2.0**-25, 1.0001 * 2.0**-25, 2.0**-133, 2.0**-134]
    made = [near, -near, tiny.ravel(), np.array([*edges, MIDDLE, -MIDDLE])]
    return np.concatenate([bits, *(part.astype(dtype) for part in made)])


def nearest(value: float, kind: str) -> int:
    """The right bits, in exact arithmetic; infinities by their sign."""
    if np.isinf(value):
        infinity = float_literals._FORMATS[kind].infinity
        return infinity | 0x8000 if value < 0 else infinity
    text = str(Decimal(value))
    return float_literals._nearest(float_literals._FORMATS[kind], text)


@pytest.mark.drawn
@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize("target", [Element.F16, Element.BF16])
def test_narrowing_is_exactly_rounded(
    tmp_path: Path, cache: Cache, source: type, target: Element
) -> None:
    values = samples(source)
    got = converted(tmp_path, cache, values, target)
    numbers = ~np.isnan(values)
    assert np.isnan(got[~numbers].astype(np.float32)).all()
    some = np.flatnonzero(numbers)[::3]
    want = [nearest(float(value), LLVM_NAMES[target]) for value in values[some]]
    assert got.view(np.uint16)[some].tolist() == want


def test_a_double_is_rounded_once(tmp_path: Path, cache: Cache) -> None:
    """Through a float this would become 1: the middle, then to even."""
    values = np.array([MIDDLE + 2.0**-40, MIDDLE, MIDDLE - 2.0**-40])
    got = converted(tmp_path, cache, values, Element.BF16)
    assert got.astype(np.float64).tolist() == [1 + 2.0**-7, 1, 1]
    assert ml_dtypes.bfloat16(np.float32(values[0])) == 1


def test_widening_is_exact(tmp_path: Path, cache: Cache) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for target in (Element.F32, Element.F64):
        got = converted(tmp_path, cache, values, target)
        want = values.astype(target.dtype)
        numbers = ~np.isnan(values)
        assert np.isnan(got[~numbers]).all()
        assert got[numbers].tobytes() == want[numbers].tobytes()
