"""Tables of rows scored by a model: columns in, columns out, in any order and size."""
