"""Shapes through If, Loop and Scan: bodies typed from outside, outputs from bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import onnx_ir as ir

from nanoloom.errors import DataDependent, ModelError, Unsupported
from nanoloom.graph import scan_opset8, signatures, unfit_branch, unroll
from nanoloom.graph.conditions import never_stops, scalar
from nanoloom.graph.data_dependent import merge_branches
from nanoloom.graph.data_dependent.count import counts_of
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.known_trips import (
    FEW,
    MOST,
    known_trips,
    run_all,
)
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.data_dependent.outward import hand_on, hand_on_branches
from nanoloom.graph.data_dependent.rooms import NEEDED, Unbounded, is_outside
from nanoloom.graph.data_dependent.rows_read import OWNER
from nanoloom.graph.data_dependent.trips import (
    TRIPS,
    count_trips,
    decided_alone,
    fix_trips,
)
from nanoloom.graph.dynamic import first_dynamic, first_unfit
from nanoloom.graph.grown_rows import collect_rows
from nanoloom.graph.loop_types import like, set_loop_outputs, type_loop
from nanoloom.graph.move_into_branches import move_into_branches
from nanoloom.graph.sequences.appended import append_rows
from nanoloom.graph.sequences.change import elements_of
from nanoloom.graph.sequences.outputs import open_outputs, regroup, spans_of
from nanoloom.graph.splice import detach, inline_graph, local_outputs, substitute
from nanoloom.graph.types import integer_sources, shape_of
from nanoloom.graph.unique_names import Names
from nanoloom.graph.unlike_branches import other_ranks, require_alike

OPERATORS = ("If", "Loop", "Scan")
SCAN_WITHOUT_BATCH = 9
# What decides how many trips scan outputs have.
BY_NUMBER = "the shape of its scan outputs depends on the number of trips"
BY_CONDITION = "the shape of its scan outputs depends on its condition"
BY_DATA = (BY_NUMBER, BY_CONDITION)


def where(node: ir.Node) -> str:
    return f"node {node.name} ({node.op_type})"


@dataclass(frozen=True)
class Control:
    """run: completes the shapes of a body.  opset: of the model's default domain.

    decided: gets what shapes that depend on data go by.
    """

    run: Callable[[ir.Graph], None]
    names: Names
    opset: int
    decided: Decisions = field(default_factory=Decisions)

    def visit(self, graph: ir.Graph, node: ir.Node) -> None:
        """Type a control-flow node's outputs, or replace it by what it does."""
        if node.op_type == "Scan" and node.attributes.get("num_scan_inputs") is None:
            raise ModelError("num_scan_inputs is missing", where=where(node))
        for body in (a.as_graph() for a in node.attributes.values() if is_graph(a)):
            local_outputs(body, self.names)
        batched = (node.version or self.opset) < SCAN_WITHOUT_BATCH
        if node.op_type == "Scan" and batched:
            scan_opset8.nest(graph, node, self.names)
            return
        signatures.require_signature(node)
        match node.op_type:
            case "If":
                self.branch(graph, node)
            case "Loop":
                self.loop(graph, node)
            case _:
                self.scan(graph, node)

    def body(
        self,
        node: ir.Node,
        name: str,
        fails: Callable[[ir.Graph], Unsupported | None] = first_unfit,
    ) -> ir.Graph:
        """A body with complete shapes, or the error that says why not."""
        found = node.attributes[name].as_graph()
        self.run(found)
        if node.op_type == "If":
            open_outputs(found, self.names)
        error = fails(found)
        if error is not None:
            raise error
        return found

    def branch(self, graph: ir.Graph, node: ir.Node) -> None:
        """Put the taken branch in the node's place, or type the outputs from both."""
        taken = scalar(node.inputs[0])
        if taken is not None:
            name = "then_branch" if taken else "else_branch"
            body = node.attributes[name].as_graph()
            substitute(graph, node, inline_graph(body, [], graph, node))
            return
        names = "then_branch", "else_branch"
        for name in names:
            node.attributes[name].as_graph().meta[OWNER] = node
        original = [
            node.attributes[x].as_graph().clone(allow_outer_scope_values=True)
            for x in names
        ]
        branches = self.branches(node, names)
        if (spans := spans_of(node, branches)) is not None:
            regroup(graph, node, spans, self.names)
            return
        pairs = list(zip(*(body.outputs for body in branches), strict=True))
        counted = any(counts_of(x) for pair in pairs for x in pair)
        joined = counted or merge_branches.numbers_decide(node, self.decided)
        unlike = other_ranks(node, pairs) if joined else []
        if unlike and move_into_branches(node, unlike, original, self.names):
            return
        for body in original:
            detach(body)
        for index, (x, y) in enumerate(pairs):
            require_alike(node, index, (x, y), joined=joined)
        given = self.names, self.opset, self.decided
        merge_branches.Join(node, branches, *given).run()
        maker = Maker(graph, node, self.names, self.opset, (0,), self.decided)
        hand_on_branches(maker, branches)

    def branches(self, node: ir.Node, names: tuple[str, str]) -> list[ir.Graph]:
        """Both bodies; one that cannot run fails if it is taken."""
        errors: dict[str, ModelError] = {}
        for name in names:
            branch = f"{node.name} {name}"
            if branch in self.decided.unfit:
                errors[name] = unfit_branch.for_all_sizes(where(node), name)
                continue
            try:
                self.body(node, name, first_dynamic)
            except ModelError as error:
                errors[name] = error
                if self.decided.is_open:
                    self.decided.unfit.add(branch)
                    errors[name] = unfit_branch.for_all_sizes(where(node), name)
        bodies = [node.attributes[name].as_graph() for name in names]
        unfit_branch.fail(bodies, [errors.get(name) for name in names], self.names)
        return bodies

    def loop(self, graph: ir.Graph, node: ir.Node) -> None:
        """Type the outputs where no shape changes from trip to trip, else unroll."""
        if append_rows(graph, node, self.names):
            return
        body = node.attributes["body"].as_graph()
        if node.inputs[0] is None and never_stops(node):
            raise ModelError(
                "it never ends: no number of trips, and a condition that stays true",
                where=where(node),
            )
        for formal in body.inputs[: signatures.LEADING]:
            signatures.to_one_element(formal)
        original = body.clone(allow_outer_scope_values=True)
        if any(elements_of(x) is not None for x in node.inputs):
            reason = "the sequence that it carries changes from trip to trip"
        else:
            reason = self.why_unrolled(node, body)
        maker = Maker(graph, node, self.names, self.opset, (0, 1), self.decided)
        if reason is None:
            self.counted(maker, body)
            return
        if collect_rows(graph, node, body, original, self.names):
            return
        self.ended(maker, body, original, reason)

    def ended(self, m: Maker, body: ir.Graph, original: ir.Graph, reason: str) -> None:
        """A loop that cannot stay as it is; `original` is its body as the model has it.

        Its trips are those that there is room for, known now, or counted; or it is
        written out.
        """
        node, outside = m.node, is_outside(self.decided, m.graph)
        if reason == BY_NUMBER and never_stops(node) and outside:
            fix_trips(m)
            self.counted(m, body)
            return
        alone = decided_alone(node, body) and NEEDED not in body.meta
        trips = known_trips(node, body, self.opset) if alone else None
        many = reason == BY_CONDITION and trips is not None and not 0 < trips <= FEW
        if many and trips != MOST and not (trips and self.decided.is_open):
            run_all(m, body, trips or 0)
            self.counted(m, body)
            return
        if reason in BY_DATA and (many or not alone):
            count_trips(m, original, body)
            return
        if scalar(node.inputs[0]) is None and node.inputs[0] is not None:
            raise DataDependent(
                f"{reason}, and the number of trips is not known",
                integer_sources(node.inputs[:2]),
                where=where(node),
                hint="make it a constant of the model",
            )
        unroll.start(m.graph, node, original)

    def counted(self, m: Maker, body: ir.Graph) -> None:
        """A loop that stays: the shapes of its outputs, by its number of trips."""
        condition, limit = m.node.inputs[1], scalar(m.node.inputs[0])
        trips = m.node.meta.get(TRIPS, limit)
        if condition is not None and scalar(condition) == 0:
            trips = 0
        set_loop_outputs(m.node, body, trips)
        hand_on(m, body)

    def why_unrolled(self, node: ir.Node, body: ir.Graph) -> str | None:
        """Type a body; why it cannot stay one, None if it can."""
        type_loop(node, body)
        try:
            self.run(body)
            return self.changes(node, body)
        except Unbounded:
            raise  # with room there is nothing to unroll
        except DataDependent as error:
            return error.reason

    def changes(self, node: ir.Node, body: ir.Graph) -> str | None:
        """Why the loop cannot stay a loop with static shapes; None if it can."""
        carried = len(node.inputs) - 2
        error = first_unfit(body, 1 + carried)
        if error is not None:
            return error.reason
        condition, *after = body.outputs[: 1 + carried]
        signatures.require_condition(node, condition)
        signatures.require_same_types(node, body.inputs[2:], after)
        pairs = zip(body.inputs[2:], body.outputs[1 : 1 + carried], strict=True)
        for before, after in pairs:
            if before.shape is None or shape_of(before) != shape_of(after):
                return f"the shape of {before.name} changes from trip to trip"
        if len(body.outputs) == 1 + carried or TRIPS in node.meta:
            return None
        if scalar(node.inputs[0]) is None and node.inputs[0] is not None:
            return BY_NUMBER
        stops = scalar(node.inputs[1]) == 0 and node.inputs[1] is not None
        if not never_stops(node) and not stops:
            return BY_CONDITION
        return None

    def scan(self, graph: ir.Graph, node: ir.Node) -> None:
        """States keep their shapes; scan outputs gain the axis of the sequence."""
        count = node.attributes["num_scan_inputs"].as_int()
        states = len(node.inputs) - count
        raw = node.attributes["body"].as_graph()
        axes = signatures.ints(node, "scan_input_axes", count)
        trips = signatures.scanned(node, axes)
        for i, formal in enumerate(raw.inputs):
            like(formal, node, i, drop=axes[i - states] if i >= states else None)
        body = self.body(node, "body", partial(first_unfit, most=states))
        signatures.require_same_types(node, body.inputs[:states], body.outputs[:states])
        for before, after in zip(body.inputs[:states], body.outputs, strict=False):
            if shape_of(before) != shape_of(after):
                raise ModelError(
                    f"state {before.name} has shape {shape_of(before)} before and "
                    f"{shape_of(after)} after a step",
                    where=where(node),
                )
        along = signatures.ints(node, "scan_output_axes", len(node.outputs) - states)
        for i, (value, inner) in enumerate(
            zip(node.outputs, body.outputs, strict=True)
        ):
            value.type, value.shape = inner.type, inner.shape
            if i >= states:
                shape = list(shape_of(inner))
                axis = along[i - states]
                signatures.require_axis(node, "scan_output_axes", axis, len(shape) + 1)
                shape.insert(axis if axis >= 0 else axis + len(shape) + 1, trips)
                value.shape = ir.Shape(shape)
        hand_on(Maker(graph, node, self.names, self.opset, (), self.decided), body)


def is_graph(attribute: ir.Attr) -> bool:
    return attribute.type == ir.AttributeType.GRAPH
