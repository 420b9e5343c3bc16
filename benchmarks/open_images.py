"""Models of images with any height and width, from those that have one size.

`resnet18-images` is resnet18 with both sides left open, of one image.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

SUFFIX = "-images"
SIDES = ("height", "width")
# Some that are divided by 32, and one that nothing divides.
SIZES = ((224, 224), (160, 192), (320, 320), (97, 131))
# A U-Net enlarges what it has made small by 16: others do not fit together.
MULTIPLES = {"unet": ((256, 256), (160, 192), (128, 96))}


def is_open(name: str) -> bool:
    return name.endswith(SUFFIX)


def base(name: str) -> str:
    """The model that it is made of."""
    return name.removesuffix(SUFFIX)


def image_sizes(name: str) -> list[dict[str, int]]:
    """Heights and widths that are measured."""
    sizes = MULTIPLES.get(base(name), SIZES)
    return [dict(zip(SIDES, size, strict=True)) for size in sizes]


def open_sides(path: Path) -> Path:
    """The model with names for both sides of its image, beside the one at `path`."""
    out = path.with_name(f"{path.stem}{SUFFIX}.onnx")
    if out.exists():
        return out
    model = onnx.load(path)
    (image,) = model.graph.input
    axes = image.type.tensor_type.shape.dim
    axes[0].dim_value = 1
    for axis, name in zip(axes[2:], SIDES, strict=True):
        axis.dim_param = name
    del model.graph.value_info[:]
    for output in model.graph.output:
        for number, axis in enumerate(output.type.tensor_type.shape.dim):
            axis.dim_param = f"{output.name} {number}"
    onnx.save(model, out)
    return out


def image(path: Path, sides: dict[str, int]) -> dict[str, np.ndarray]:
    """An input of the model at `path`, of these sides."""
    (given,) = onnx.load(path, load_external_data=False).graph.input
    channels = given.type.tensor_type.shape.dim[1].dim_value
    shape = (1, channels, *sides.values())
    return {given.name: np.random.default_rng(0).standard_normal(shape, np.float32)}
