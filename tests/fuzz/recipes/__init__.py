"""How to draw a node of every operator, a family a file."""
