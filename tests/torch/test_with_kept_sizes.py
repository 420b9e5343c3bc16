"""A rule of torch that fails halfway leaves nothing behind."""

from __future__ import annotations

from typing import Any

import torch  # pyright: ignore[reportMissingImports] - an extra

from nanoloom.frontend.torch.decomposed import traced_rule


def test_a_trace_that_fails_leaves_sizes_open() -> None:
    auto = torch.export.Dim.AUTO
    said: dict[str, Any] = {"dynamic_shapes": ({0: auto, 1: auto},)}
    relu = torch.nn.ReLU()
    exported = torch.export.export(relu, (torch.ones(4, 3),), **said)
    (node,) = (n for n in exported.graph.nodes if n.op == "placeholder")
    x = node.meta["val"]
    rows, columns = x.shape
    env = rows.node.shape_env

    def fails(given: Any) -> Any:
        assert int(given.shape[0]) == 4 and given.shape[1] < 7
        raise RuntimeError

    assert traced_rule(fails, [x], torch.ops.aten.relu.default) is None
    assert not env.guards
    assert rows.node.expr.is_Symbol and columns.node.expr.is_Symbol
    made = traced_rule(lambda t: t + t.shape[0], [x], torch.ops.aten.relu.default)
    assert made is not None
    targets = {n.target for n in made.graph.nodes}
    assert torch.ops.aten.sym_size.int in targets
