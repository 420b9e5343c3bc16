"""Which stages are computed inside of which others' loops, and what that saves."""
