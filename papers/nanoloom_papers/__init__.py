"""What papers measured, measured again: nanoloom beside its peers and other compilers.

It registers itself with nanoloom's command through the entry points of pyproject.toml;
nanoloom does not know it.
"""
