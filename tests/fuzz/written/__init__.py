"""Modules of PyTorch as people write them: kinds of programs, with options drawn."""
