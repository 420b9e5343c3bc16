"""Loops in MLIR's affine dialect: which of them reduce, and what."""
