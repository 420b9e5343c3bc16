"""Calls of kernels, and where each of their buffers lies in the arena."""
