"""The passes from vectors and loops on buffers down to LLVM's dialect, in order."""

from __future__ import annotations

TO_ADDRESSES = (
    "canonicalize",
    "cse",
    "fold-memref-alias-ops",  # loads read the subview's source directly
    "func.func(convert-vector-to-scf{full-unroll=true})",  # transfers of rank > 1
    "lower-affine",  # index arithmetic made by the two lines above
    "loop-invariant-code-motion",  # address arithmetic out of the inner loops
)

TO_LLVM = (
    "expand-strided-metadata",  # subviews have no direct lowering
    "lower-affine",  # again: what expand-strided-metadata makes
    "convert-scf-to-cf",
    "convert-math-to-llvm",  # sqrt, fma, floor: one instruction each
    "convert-math-to-libm",  # f64 functions that no polynomial replaces
    "convert-vector-to-llvm{enable-x86=1}",  # its instructions, too
    "convert-ub-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-cf-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1}",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)
