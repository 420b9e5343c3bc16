"""What is read of a body once: which products a sum multiplies by itself."""

from __future__ import annotations

import pytest

from nanoloom.ir.mlir import context, ir, named
from nanoloom.vector.body_steps import steps_of


@pytest.mark.parametrize(
    ("lines", "fused"),
    [
        ("%p = arith.mulf %a, %b : f32 %r = arith.addf %s, %p : f32", True),
        ("%p = arith.mulf %a, %b : f32 %r = arith.addf %p, %s : f32", True),
        ("%p = arith.addf %a, %b : f32 %r = arith.addf %s, %p : f32", False),
        ("%p = arith.mulf %a, %b : f32 %r = arith.addf %p, %p : f32", False),
        ("%p = arith.mulf %a, %b : f32 %r = arith.addf %a, %p : f32", False),
        ("%r = arith.addf %s, %s : f32", False),
    ],
)
def test_a_product_with_no_other_use_is_part_of_its_sum(
    lines: str, fused: bool
) -> None:
    with context():
        module = ir.Module.parse(f"""
          func.func @f(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {{
            linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>,
                affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                iterator_types = ["parallel"]}}
                ins(%x, %y : memref<8xf32>, memref<8xf32>) outs(%z : memref<8xf32>) {{
            ^bb0(%a: f32, %b: f32, %s: f32):
              {lines.replace(" %r", chr(10) + "%r")}
              linalg.yield %r : f32
            }}
            return
          }}""")
        (op,) = named(module, "linalg.generic")
        block = op.operation.regions[0].blocks[0]
        a, b, s = block.arguments
        made = steps_of(block, (s,))
        plain = steps_of(block, ())
        sums = [step for step in made if step.is_fused]
        assert [step.name for step in made] == [step.name for step in plain]
        assert [step.is_product for step in made].count(True) == len(sums) == fused
        assert all(step.operands == (a, b, s) for step in sums)
        assert not any(step.is_fused or step.is_product for step in plain)
