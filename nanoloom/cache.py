"""The disk cache of compiled kernels and models."""
