"""Random graphs and damaged files: what nanoloom makes of models nobody wrote."""
