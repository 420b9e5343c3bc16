"""The forms of a loop over vectors: what becomes of numbers that fill none.

    masked            for i in 0..n by lanes: f(i..i+lanes-1) where i + lane < n
    masked remainder  for i in 0..m by lanes: f(i..i+lanes-1);  f(m..n-1) under a mask
    scalar remainder  for i in 0..m by lanes: f(i..i+lanes-1);  for i in m..n: f(i)
    vector length     while i < n: length = vsetvli(n - i); f(i..i+length-1)

m is the largest multiple of lanes up to n.  The first two forms, and both of the last
lines that take their numbers one by one, are those of "Scalable Vectorisation in
Linalg" (masked, or unmasked with a remainder) and of its discussion (vector length).
"""

from __future__ import annotations

MASKED, MASKED_REMAINDER = "masked", "masked remainder"
SCALAR_REMAINDER, VECTOR_LENGTH = "scalar remainder", "vector length"
FORMS = (MASKED, MASKED_REMAINDER, SCALAR_REMAINDER, VECTOR_LENGTH)
MASKING = (MASKED, VECTOR_LENGTH)  # every round has lanes that may not count
