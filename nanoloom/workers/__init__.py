"""Kernels are compiled by other processes: all cores work, and none takes the user's
process with it when MLIR or LLVM gives up."""
