"""Sequences and optionals, resolved while shapes go through the graph.

A sequence of known length is the list of its tensors: values of the graph, noted beside
the sequence's own value.  Its nodes go; what reads a tensor of it reads that one:

    SequenceAt(SequenceConstruct(a, b), 1) -> b
    ConcatFromSequence(SplitToSequence(x)) -> Concat(Split(x))

A place that is known at run time only is looked up in the tensors, one behind the
other, where they have one shape.  An optional is what it holds, or nothing.
"""
