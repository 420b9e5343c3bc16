"""Small detectors with the post-processing of torchvision's SSDLite and of YOLOv8.

Nodes and their order are those that torch.onnx.export writes for them; the network in
front is a few convolutions with seeded weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

SIDE, GRID = 32, 8  # of the image, of the map of features
CLASSES = 4  # the first one is the background
CANDIDATES, DETECTIONS = 20, 40  # of a class, of an image
ANCHORS = GRID * GRID * 2

NETWORK = """
  c1 = Conv<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(image, w1)
  r1 = HardSwish(c1)
  c2 = Conv<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(r1, w2)
  features = Relu(c2)
"""

DECODE = """
  bm = Conv(features, wb)
  bt = Transpose<perm = [0, 2, 3, 1]>(bm)
  deltas = Reshape(bt, rows4)
  cm = Conv(features, wc, bc)
  ct = Transpose<perm = [0, 2, 3, 1]>(cm)
  logits = Reshape(ct, rows_classes)
  scores = Softmax<axis = -1>(logits)
  centers, extents = Split<axis = 1, num_outputs = 2>(deltas)
  moved = Mul(centers, tenth)
  moved_by = Mul(moved, anchor_sizes)
  at = Add(moved_by, anchor_centers)
  small = Mul(extents, fifth)
  least = Min(small, most)
  grown = Exp(least)
  sized = Mul(grown, anchor_sizes)
  half = Mul(sized, point5)
  low = Sub(at, half)
  high = Add(at, half)
  corners = Concat<axis = 1>(low, high)
  boxes = Clip(corners, zero_f, side)
"""

# For each class: the boxes above a threshold, of those the best ones.
OF_CLASS = """
  score_{c} = Gather<axis = 1>(scores, class_{c})
  above_{c} = Greater(score_{c}, threshold)
  found_{c} = NonZero(above_{c})
  places_{c} = Transpose<perm = [1, 0]>(found_{c})
  kept_{c} = GatherND(score_{c}, places_{c})
  found_again_{c} = NonZero(above_{c})
  row_{c} = Transpose<perm = [1, 0]>(found_again_{c})
  kept_boxes_{c} = GatherND(boxes, row_{c})
  shape_{c} = Shape(kept_{c})
  length_{c} = Gather<axis = 0>(shape_{c}, zero)
  lengths_{c} = Unsqueeze(length_{c}, axes0)
  both_{c} = Concat<axis = 0>(candidates, lengths_{c})
  k_{c} = ReduceMin<keepdims = 0>(both_{c})
  ks_{c} = Reshape(k_{c}, minus1)
  best_{c}, order_{c} = TopK<axis = 0, largest = 1, sorted = 1>(kept_{c}, ks_{c})
  best_boxes_{c} = Gather<axis = 0>(kept_boxes_{c}, order_{c})
  many_{c} = Shape(best_{c})
  labels_{c} = Expand(class_{c}, many_{c})
"""

ALL_CLASSES = """
  all_boxes = Concat<axis = 0>({boxes})
  all_scores = Concat<axis = 0>({scores})
  all_labels = Concat<axis = 0>({labels})
  number = Size(all_boxes)
  nothing = Equal(number, zero)
  keep_all = If (nothing) <then_branch = none () => (int64[z] no_place)
      <int64[0] no_place = {{}}> {{ }}, else_branch = some () => (int64[p] places) {{
      far = ReduceMax<keepdims = 0>(all_boxes)
      labels_f = Cast<to = 1>(all_labels)
      step = Add(far, one_f)
      offsets = Mul(labels_f, step)
      columns = Unsqueeze(offsets, axes1)
      apart = Add(all_boxes, columns)
      boxes3 = Unsqueeze(apart, axes0)
      scores2 = Unsqueeze(all_scores, axes0)
      scores3 = Unsqueeze(scores2, axes0)
      chosen = NonMaxSuppression(boxes3, scores3, no_limit, overlap)
      third = Gather<axis = 1>(chosen, column2)
      places = Squeeze(third, axes1)
    }}>
  keep = Slice(keep_all, axes0, detections, axes0)
  detected = Gather<axis = 0>(all_boxes, keep)
  confidence = Gather<axis = 0>(all_scores, keep)
  labels = Gather<axis = 0>(all_labels, keep)
"""

YOLO = """
  bm = Conv(features, wb)
  b1 = Reshape(bm, fours)
  cm = Conv(features, wc, bc)
  c1_ = Reshape(cm, classes)
  probabilities = Sigmoid(c1_)
  middle, size = Split<axis = 1, num_outputs = 2>(b1)
  wide = Exp(size)
  half = Mul(wide, stride)
  shifted = Add(middle, grid)
  at = Mul(shifted, stride2)
  low = Sub(at, half)
  high = Add(at, half)
  corners = Concat<axis = 1>(low, high)
  boxes = Transpose<perm = [0, 2, 1]>(corners)
  best = ReduceMax<keepdims = 1>(probabilities, axes1)
  kinds = ArgMax<axis = 1, keepdims = 0>(probabilities)
  chosen = NonMaxSuppression(boxes, best, most_boxes, overlap, threshold)
  images_places = Gather<axis = 1>(chosen, columns)
  box = GatherND(boxes, images_places)
  column = Transpose<perm = [0, 2, 1]>(best)
  score = GatherND(column, images_places)
  kind = GatherND(kinds, images_places)
  kind_f = Cast<to = 1>(kind)
  kind_column = Unsqueeze(kind_f, axes1)
  detections = Concat<axis = 1>(box, score, kind_column)
"""


def ssdlite() -> onnx.ModelProto:
    """image [1, 3, 32, 32] -> boxes [n, 4], confidence [n], labels [n]."""
    kinds = range(1, CLASSES)
    text = f"""
ssdlite (float[1, 3, {SIDE}, {SIDE}] image) => (float[n, 4] detected,
    float[n] confidence, int64[n] labels)
{{
{NETWORK}{DECODE}{"".join(OF_CLASS.format(c=c) for c in kinds)}{
        ALL_CLASSES.format(
            boxes=", ".join(f"best_boxes_{c}" for c in kinds),
            scores=", ".join(f"best_{c}" for c in kinds),
            labels=", ".join(f"labels_{c}" for c in kinds),
        )
    }}}"""
    random = np.random.default_rng(5)
    y, x = np.divmod(np.arange(ANCHORS) // 2, GRID)
    centers = np.stack([x, y], 1) * (SIDE / GRID) + SIDE / GRID / 2
    sizes = np.where(np.arange(ANCHORS)[:, None] % 2, [[12, 8]], [[7, 10]])
    constants = weights(random, 8, 2 * CLASSES) | {
        "anchor_centers": centers.astype(np.float32),
        "anchor_sizes": sizes.astype(np.float32),
        "rows4": np.array([-1, 4]),
        "rows_classes": np.array([-1, CLASSES]),
        "tenth": np.float32(0.1),
        "fifth": np.float32(0.2),
        "most": np.float32(4.135),
        "point5": np.float32(0.5),
        "zero_f": np.float32(0),
        "one_f": np.float32(1),
        "side": np.float32(SIDE),
        "threshold": np.float32(0.4),
        "overlap": np.array([0.3], np.float32),
        "no_limit": np.array([np.iinfo(np.int64).max]),
        "candidates": np.array([CANDIDATES]),
        "detections": np.array([DETECTIONS]),
        "zero": np.array(0),
        "minus1": np.array([-1]),
        "axes0": np.array([0]),
        "axes1": np.array([1]),
        "column2": np.array([2]),
    }
    constants["bc"] = np.tile([1.0, -0.5, -0.5, -0.5], 2).astype(np.float32)
    return parsed(text, constants | {f"class_{c}": np.array(c) for c in kinds})


def yolo() -> onnx.ModelProto:
    """image [1, 3, 32, 32] -> [n, 6]: a box, its score and its class."""
    text = f"""
yolo (float[1, 3, {SIDE}, {SIDE}] image) => (float[n, 6] detections)
{{
{NETWORK}{YOLO}}}"""
    y, x = np.divmod(np.arange(GRID * GRID), GRID)
    stride = SIDE / GRID
    constants = weights(np.random.default_rng(6), 4, CLASSES) | {
        "fours": np.array([1, 4, -1]),
        "classes": np.array([1, CLASSES, -1]),
        "grid": (np.stack([x, y])[None] + 0.5).astype(np.float32),
        "stride": np.float32(stride),
        "stride2": np.float32(stride),
        "axes1": np.array([1]),
        "columns": np.array([0, 2]),
        "most_boxes": np.array([25]),
        "overlap": np.array([0.45], np.float32),
        "threshold": np.array([0.25], np.float32),
    }
    constants["bc"] = np.full(CLASSES, -2.5, np.float32)
    return parsed(text, constants)


def weights(
    random: np.random.Generator, boxes: int, scores: int
) -> dict[str, np.ndarray]:
    """Of the network and of its two heads."""
    shapes = {
        "w1": (8, 3, 3, 3),
        "w2": (16, 8, 3, 3),
        "wb": (boxes, 16, 1, 1),
        "wc": (scores, 16, 1, 1),
    }
    return {
        name: (
            random.standard_normal(shape) / np.sqrt(np.prod(shape[1:])) * 1.6
        ).astype(np.float32)
        for name, shape in shapes.items()
    }


def parsed(
    text: str, constants: Mapping[str, np.ndarray | np.generic]
) -> onnx.ModelProto:
    head = '<ir_version: 9, opset_import: ["" : 18]>\n'
    model = onnx.parser.parse_model(head + text)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in constants.items()
    )
    return model


def images(count: int = 20) -> list[np.ndarray]:
    """Of different contrast: the first has none, and so nothing to detect."""
    random = np.random.default_rng(7)
    return [
        (random.standard_normal((1, 3, SIDE, SIDE)) * 0.9 * i / count).astype(
            np.float32
        )
        for i in range(count)
    ]
