"""The door to MLIR, and what operations on tensors say of themselves."""
