"""nanoloom turns a neural network into vector code."""

__version__ = "0.1.0"
