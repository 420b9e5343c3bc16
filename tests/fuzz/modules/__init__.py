"""Random modules of PyTorch, compiled in both ways, beside torch itself."""
