"""The text of docs/math.md, from the tables of functions."""

from __future__ import annotations

from nanoloom.linalg.special.table import SPECIAL
from nanoloom.vector.math.table import BUILDERS, EXPANSIONS


def document() -> str:
    rows = [
        f"| {name.rpartition('.')[2]} | {x.ulp} | {x.ulp_f64 or ''} | {x.note} |"
        for name, x in (EXPANSIONS | BUILDERS).items()
    ]
    special = [f"| {n} | {x.ulp} | {x.note} |" for n, x in SPECIAL.items()]
    parts = (*_HEAD.splitlines(), *rows, *_SPECIAL.splitlines(), *special)
    return "\n".join((*parts, *_TAIL.splitlines(), ""))


_HEAD = """# Vector math

Math on vectors is made of vector arithmetic (fused multiply-add, compare, select,
shift), the same for every target and every vector length, fixed or scalable. No call
to libm is left on f32. The error is the largest distance of the result from the exact
value in units in the last place (ULP) of the result, denormal results included; 0.5 is
perfect. Functions of f64 without a number are libm's.

| function | max error of f32 | of f64 | remark |
|---|---|---|---|"""

_SPECIAL = """
Operators of PyTorch that neither ONNX nor MLIR has are computed in f64
(`nanoloom/linalg/special/`). Of f32 and narrower types their error is that of rounding
the result once, 0.51 ULP.

| function | max error, ULP of f64 | remark |
|---|---|---|"""

_TAIL = """
- NaN passes, infinities and signed zeros follow IEEE 754 and C99, denormals are
  numbers.
- f16 and bf16 operands are extended to f32 and the result is rounded back: at most
  0.51 ULP of f16 and bf16, except that some CPUs' conversion to bf16 (AVX512-BF16)
  makes 0 of a denormal.
- Where a target has no fused multiply-add, all of f64 but log1p and expm1 is libm's.
- The code relies on fused multiply-add instructions (x86-64-v3, any AArch64, RISC-V V).

Regenerate with `python -m nanoloom.vector.math > docs/math.md`."""
