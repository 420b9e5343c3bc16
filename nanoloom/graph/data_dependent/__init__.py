"""Shapes that depend on data: a tensor of the largest shape, and how much of it counts.

What NonZero gives has as many columns as there may be, and a number that the program
computes says how many of them are meant.  Operators behind it keep to that: what lies
past the number reaches no element before it.  So every shape is static, a model is
compiled once, and the number of an output's elements is one more output.

    count.py      the number of an axis, on values of the graph
    integer_bounds.py     what an integer that the program computes may be
    node_builder.py      nodes that take the place of one
    dispatch.py       which rule an operator has; the other files are rules
    publish_counts.py    the numbers as outputs of the program
"""
