"""Names of intrinsics in the code generator's words."""

from __future__ import annotations

import pytest

from nanoloom.llvm.intrinsic_names import as_llvm22

PLAIN = "call void @llvm.aarch64.sme.{}(<vscale x 4 x i1> %0, ptr %1, i32 0, i32 %2)"


@pytest.mark.parametrize("name", ["ld1w.horiz", "st1w.vert", "st1d.horiz"])
def test_rows_of_tiles_have_no_kind_of_pointer(name: str) -> None:
    assert as_llvm22(PLAIN.format(f"{name}.p0")) == PLAIN.format(name)


def test_other_names_stay() -> None:
    text = "call @llvm.masked.load.nxv4f32.p0() call @llvm.aarch64.sme.zero(i32 255)"
    assert as_llvm22(text) == text
