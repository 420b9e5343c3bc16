"""A profile's times on the model's own nodes, for viewers of models.

A kernel's time stands at the node that it is named for; its other nodes say which one
that is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from nanoloom.errors import Error
from nanoloom.explain.profile import Layer, Profile
from nanoloom.explain.units import percent, seconds

GRADIENT = (
    {"stop": 0.0, "bgColor": "#ffffff"},
    {"stop": 1.0, "bgColor": "#e8452c"},
)


def overlay(found: Profile) -> dict[str, Any]:
    """Node data for Model Explorer: seconds, by the names of nodes' values."""
    results = {
        value: {"value": layer.seconds}
        for layer in found.layers
        for value in found.outputs.get(layer.name, ())
        if value
    }
    return {"results": results, "gradient": [*GRADIENT]}


def annotated(path: Path, found: Profile, place: Path) -> onnx.ModelProto:
    """The model of a file, its nodes with times as metadata, as Netron shows it.

    place: where the copy will be.  Raises Error for a copy elsewhere of a model whose
    weights are in files beside it.
    """
    model = onnx.load(str(path), load_external_data=False)
    apart = any(
        x.data_location == onnx.TensorProto.EXTERNAL for x in model.graph.initializer
    )
    if apart and path.resolve().parent != place.resolve().parent:
        raise Error(
            "its weights are in files beside it, which the copy reads as well",
            where=str(path),
            hint=f"write the copy into {path.resolve().parent}",
        )
    said = metadata(found)
    for node in model.graph.node:
        for key, value in said.get(next(iter(node.output), ""), {}).items():
            entry = node.metadata_props.add()
            entry.key, entry.value = f"nanoloom.{key}", value
    return model


def metadata(found: Profile) -> dict[str, dict[str, str]]:
    """What is said of each node, by the name of its first value."""
    made: dict[str, dict[str, str]] = {}
    for layer in found.layers:
        for node in (*layer.nodes, layer.name):
            values = found.outputs.get(node, ())
            if not values:
                continue
            own = node == layer.name
            made[values[0]] = (
                times(layer, found.inside) if own else {"computed_with": layer.name}
            )
    return made


def times(layer: Layer, whole: float) -> dict[str, str]:
    """Of a layer, for readers."""
    found = {"time": seconds(layer.seconds)}
    if whole:
        found["share_of_run"] = percent(layer.seconds / whole)
    if layer.share is not None:
        found["share_of_roof"] = percent(layer.share)
    return found
