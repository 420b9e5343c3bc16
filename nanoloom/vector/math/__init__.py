"""Vector math: exp, log, erf, tanh, sin ... as polynomials with a stated error.

EXPANSIONS  the table from MLIR operation to builder and error
expand_math the pass that applies it to a module
sigmoid     1 / (1 + exp(-x)), which MLIR's math dialect does not have
"""

from __future__ import annotations

from nanoloom.vector.math.expand import expand_math
from nanoloom.vector.math.table import BUILDERS, EXPANSIONS, Expansion
from nanoloom.vector.math.tanh import sigmoid

__all__ = ["BUILDERS", "EXPANSIONS", "Expansion", "expand_math", "sigmoid"]
