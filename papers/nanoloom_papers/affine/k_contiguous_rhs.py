"""Right operands of products lie along the sum, turned while compiling.

    MatMul(x, W)               ->  Gemm<transB = 1>(x, W')      W a constant matrix
    MatMul(x, W)               ->  Einsum<"...mk,...nk->...mn">(x, W')      of more axes
    Gemm(x, W, c)              ->  Gemm<transB = 1>(x, W', c)
    MatMul(x, Transpose<p>(k)) ->  Einsum<"...mk,...nk->...mn">(x, Transpose<p s>(k))

where s swaps the last two axes and (p s)[i] = p[s[i]]: [0, 2, 3, 1] becomes
[0, 2, 1, 3].  Both operands are then read one number behind the other by a loop over
the sum, whose steps are lanes of vectors.  Nothing is turned at run time that was not
turned before, and a weight is there once: those that others read as they are stay.

The second half of Algorithm 1 of the OML-vect paper, as operators of ONNX alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor, transpose_order
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import is_static, shape_of

PRODUCTS = {"Gemm", "MatMul"}
EQUATION = "...mk,...nk->...mn"
OLDEST = 12  # of opsets: Einsum is in it, and Gemm without a third operand
FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def make_k_contiguous(graph: ir.Graph, opset: int) -> dict[str, str]:
    """Rewrite a graph with static shapes in place, from its results up.

    Gives the reasons of the products that stay, by the names of their nodes.
    """
    rewriting = KContiguousRhs(graph, opset)
    for node in reversed(list(graph)):
        if is_tensor_op(node, PRODUCTS):
            rewriting.visit(node)
    return rewriting.stay


def transposed(rank: int) -> list[int]:
    """The permutation that swaps the last two of so many axes."""
    return [*range(rank - 2), rank - 1, rank - 2]


@dataclass
class KContiguousRhs(GraphEditor):
    """The graph being rewritten.  opset: of ONNX's operators."""

    opset: int
    stay: dict[str, str] = field(default_factory=dict[str, str])

    def visit(self, node: ir.Node) -> None:
        """Turn the right operand of a product, or note why it stays."""
        reason = self.refused(node)
        if reason is not None:
            self.stay[node.name or node.op_type] = reason
            return
        right = node.inputs[1]
        assert right is not None
        turned = self.transpose(right, transposed(len(shape_of(right))), node)
        inputs = [node.inputs[0], turned, *node.inputs[2:]]
        kept = list(node.attributes.values())
        if node.op_type == "Gemm":
            attributes = [a for a in kept if a.name != "transB"]
            op, added = "Gemm", [*attributes, ir.AttrInt64("transB", 1)]
        elif all(len(shape_of(x)) == 2 for x in inputs if x is not None):
            op, added = "Gemm", [ir.AttrInt64("transB", 1)]
        else:
            op, added = "Einsum", [ir.AttrString("equation", EQUATION)]
        self.product(node, op, inputs, added)

    def product(
        self,
        node: ir.Node,
        op: str,
        inputs: Sequence[ir.Value | None],
        attributes: Sequence[ir.Attr],
    ) -> None:
        """Another node in the place of a product."""
        out, name = node.outputs[0], node.name or node.op_type
        made = self.add(node, op, inputs, attributes, shape_of(out), out, name)
        self.replace(node, made)

    def refused(self, node: ir.Node) -> str | None:
        """Why a product stays as it is; None if it does not."""
        left, right = node.inputs[:2]
        if left is None or right is None or not is_static(node.outputs[0]):
            return "its shape is not known"
        if right.dtype not in FLOATS:
            return f"its right operand is of {right.dtype}, which is packed in groups"
        if node.op_type == "MatMul" and self.opset < OLDEST:
            return f"opset {self.opset} has no product of a turned operand"
        if min(len(shape_of(left)), len(shape_of(right))) < 2:
            return "an operand is a vector"
        turns = node.attributes.get("transB")
        if turns is not None and turns.as_int():
            return "it lies along the sum"
        return read_by_others(right) or not_transposed(right)


def read_by_others(right: ir.Value) -> str | None:
    """Why a right operand has to stay as it is for its other readers."""
    alone = len(list(right.uses())) == 1 and not right.is_graph_output()
    return None if alone else "its right operand is read by others"


def not_transposed(right: ir.Value) -> str | None:
    """Why it would cost something to turn a right operand."""
    if right.const_value is not None:
        return None
    order = transpose_order(right)
    if order is None:
        return "nothing turns its right operand before"
    if order[-1] == len(order) - 1:
        return "its right operand lies along the columns before it is turned"
    return None
