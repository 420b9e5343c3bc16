"""The layout of every tensor between kernels, chosen over the whole network."""
