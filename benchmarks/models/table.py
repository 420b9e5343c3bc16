"""Every model of the benchmarks: its inputs, full size and small.  Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nanoloom.errors import InputError

Kind = Literal["tokens", "mask", "types", "values"]
Dims = tuple[int | str, ...]


@dataclass(frozen=True)
class Input:
    """One input of a model: a number is a fixed dimension, a word a symbolic one."""

    name: str
    dims: Dims
    kind: Kind = "values"
    bound: int = 0  # tokens: the size of the vocabulary


@dataclass(frozen=True)
class Variant:
    """The inputs of a model at one size, and the usual sizes of symbolic dimensions."""

    inputs: tuple[Input, ...]
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Model:
    """A model by name; the module `family` of this package makes it."""

    family: str
    outputs: tuple[str, ...]
    full: Variant
    small: Variant

    def variant(self, small: bool) -> Variant:
        return self.small if small else self.full


def text(vocabulary: int, batch: int, sequence: int, types: bool = False) -> Variant:
    """Token ids, the padding mask and, for some models, the token types."""
    dims: Dims = ("batch", "sequence")
    inputs = (
        Input("input_ids", dims, "tokens", vocabulary),
        Input("attention_mask", dims, "mask"),
        Input("token_type_ids", dims, "types"),
    )
    return Variant(inputs[: 3 if types else 2], {"batch": batch, "sequence": sequence})


def texts(vocabulary: int, batch: int, sequence: int) -> Variant:
    """Token ids and mask of a text, and the token ids of another one."""
    known = text(vocabulary, batch, sequence)
    dims: Dims = ("batch", "sequence")
    other = Input("decoder_input_ids", dims, "tokens", vocabulary)
    return Variant((*known.inputs, other), known.sizes)


def image(batch: int | None, height: int, width: int, usual: int = 1) -> Variant:
    """One RGB image input; without a `batch` that dimension is symbolic."""
    if batch is None:
        pixels = Input("pixel_values", ("batch", 3, height, width))
        return Variant((pixels,), {"batch": usual})
    return Variant((Input("pixel_values", (batch, 3, height, width)),))


def features(bins: int, batch: int, frames: int) -> Variant:
    """Log power spectra: one row of `bins` numbers a frame of sound."""
    spectra = Input("features", ("batch", "frames", bins))
    return Variant((spectra,), {"batch": batch, "frames": frames})


def rows(batch: int, width: int) -> Variant:
    return Variant((Input("x", (batch, width)),))


HIDDEN, LOGITS = ("last_hidden_state",), ("logits",)

# Small sizes divide nothing: odd widths, heads of 7 or 11, images of 37 x 29.
MODELS: Mapping[str, Model] = {
    "bert-base": Model(
        "encoders",
        (*HIDDEN, "pooler_output"),
        text(30522, 1, 128, types=True),
        text(97, 3, 7, types=True),
    ),
    "bge-small": Model(
        "encoders",
        ("sentence_embedding",),
        text(30522, 1, 128, types=True),
        text(97, 3, 7, types=True),
    ),
    "distilbert": Model("encoders", LOGITS, text(30522, 1, 128), text(89, 2, 13)),
    "roberta-base": Model("encoders", HIDDEN, text(50265, 1, 128), text(101, 3, 9)),
    "albert": Model(
        "encoders",
        HIDDEN,
        text(30000, 1, 128, types=True),
        text(83, 2, 11, types=True),
    ),
    "deberta-v2": Model("encoders", HIDDEN, text(128100, 1, 128), text(79, 2, 23)),
    "gpt2": Model("gpt2", LOGITS, text(50257, 1, 128), text(103, 2, 13)),
    "t5-small": Model("t5", LOGITS, texts(32128, 1, 128), texts(97, 2, 11)),
    "swin-tiny": Model("swin", LOGITS, image(1, 224, 224), image(2, 32, 32)),
    "vit-base": Model("vit", LOGITS, image(None, 224, 224), image(None, 21, 28, 3)),
    "resnet50": Model("resnet", LOGITS, image(1, 224, 224), image(2, 37, 29)),
    "resnet18": Model("resnet", LOGITS, image(None, 224, 224), image(None, 37, 29, 3)),
    "mobilenet_v2": Model(
        "mobilenet", LOGITS, image(None, 224, 224), image(None, 37, 29, 3)
    ),
    "mobilenet_v3": Model(
        "mobilenet_v3", LOGITS, image(None, 224, 224), image(None, 37, 29, 3)
    ),
    "shufflenet_v2": Model(
        "shufflenet", LOGITS, image(None, 224, 224), image(None, 37, 29, 3)
    ),
    "detector": Model("detector", ("boxes",), image(1, 320, 320), image(1, 64, 96)),
    "vgg16": Model("vgg", LOGITS, image(1, 224, 224), image(2, 67, 45)),
    "densenet121": Model(
        "densenet", LOGITS, image(None, 224, 224), image(None, 37, 29, 3)
    ),
    "efficientnet_b0": Model(
        "efficientnet", LOGITS, image(None, 224, 224), image(None, 37, 29, 3)
    ),
    "convnext_tiny": Model("convnext", LOGITS, image(1, 224, 224), image(2, 53, 39)),
    "unet": Model("unet", ("mask_logits",), image(1, 256, 256), image(1, 37, 29)),
    "nsnet2": Model("nsnet2", ("gains",), features(161, 1, 100), features(13, 2, 11)),
    "mlp1024": Model("mlp", ("y",), rows(512, 1024), rows(29, 37)),
    "mlp2048": Model("mlp", ("y",), rows(512, 2048), rows(31, 43)),
    "mlp4096": Model("mlp", ("y",), rows(512, 4096), rows(35, 53)),
}


def find(name: str) -> Model:
    """The model `name`; InputError names the known ones."""
    if name not in MODELS:
        raise InputError(
            f"no benchmark model is named {name}", hint=f"known: {', '.join(MODELS)}"
        )
    return MODELS[name]


def seeded_inputs(
    name: str,
    small: bool = False,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, NDArray[Any]]:
    """Arrays for every input: int64 for tokens, masks and types, float32 for values.

    `sizes` replaces the usual sizes of symbolic dimensions.  The first row of a mask is
    full, later rows are padded at the end.  Values are normal with deviation 1.
    """
    variant = find(name).variant(small)
    known = {**variant.sizes, **(sizes or {})}
    generator = np.random.default_rng(seed)
    lengths: NDArray[np.int64] | None = None
    arrays: dict[str, NDArray[Any]] = {}
    for value in variant.inputs:
        shape = tuple(known[d] if isinstance(d, str) else d for d in value.dims)
        if value.kind == "values":
            arrays[value.name] = generator.standard_normal(shape, np.float32)
            continue
        if lengths is None:
            lengths = generator.integers(1, shape[1] + 1, shape[0])
            lengths[0] = shape[1]
        kept = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)
        high = {"tokens": value.bound, "mask": 2, "types": 2}[value.kind]
        drawn = generator.integers(0, high, shape)
        arrays[value.name] = kept if value.kind == "mask" else drawn * kept
    return arrays
