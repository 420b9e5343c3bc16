"""The small models kept in tests/models: which opset and exporter wrote each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class SmallModel:
    """One file: a name of MODELS, small, at an opset by an exporter."""

    name: str
    opset: int
    exporter: Literal["torchscript", "dynamo"]

    @property
    def file(self) -> str:
        return f"{self.name}_opset{self.opset}_{self.exporter}.onnx"


# Every model by an old opset and by a new one; opset 13 has no LayerNormalization,
# 18 moves the axes of reductions to an input, 20 and 21 know Gelu, 23 knows Attention.
SMALL = (
    SmallModel("bert-base", 13, "torchscript"),
    SmallModel("bert-base", 17, "torchscript"),
    SmallModel("bert-base", 21, "dynamo"),
    SmallModel("bert-base", 23, "dynamo"),
    SmallModel("bge-small", 17, "torchscript"),
    SmallModel("bge-small", 18, "dynamo"),
    SmallModel("distilbert", 13, "torchscript"),
    SmallModel("distilbert", 18, "dynamo"),
    SmallModel("roberta-base", 17, "torchscript"),
    SmallModel("roberta-base", 21, "dynamo"),
    SmallModel("albert", 13, "torchscript"),
    SmallModel("albert", 18, "dynamo"),
    SmallModel("deberta-v2", 17, "torchscript"),
    SmallModel("deberta-v2", 18, "dynamo"),
    SmallModel("t5-small", 17, "torchscript"),
    SmallModel("swin-tiny", 17, "torchscript"),
    SmallModel("gpt2", 13, "torchscript"),
    SmallModel("gpt2", 17, "torchscript"),
    SmallModel("gpt2", 21, "dynamo"),
    SmallModel("vit-base", 17, "torchscript"),
    SmallModel("vit-base", 18, "dynamo"),
    SmallModel("resnet50", 13, "torchscript"),
    SmallModel("resnet50", 18, "dynamo"),
    SmallModel("mobilenet_v2", 13, "torchscript"),
    SmallModel("mobilenet_v2", 21, "dynamo"),
    SmallModel("resnet18", 17, "torchscript"),
    SmallModel("mobilenet_v3", 17, "torchscript"),
    SmallModel("shufflenet_v2", 17, "torchscript"),
    SmallModel("detector", 17, "torchscript"),
    SmallModel("vgg16", 13, "torchscript"),
    SmallModel("vgg16", 18, "dynamo"),
    SmallModel("densenet121", 17, "torchscript"),
    SmallModel("densenet121", 18, "dynamo"),
    SmallModel("efficientnet_b0", 17, "torchscript"),
    SmallModel("efficientnet_b0", 21, "dynamo"),
    SmallModel("convnext_tiny", 13, "torchscript"),
    SmallModel("convnext_tiny", 21, "dynamo"),
    SmallModel("unet", 17, "torchscript"),
    SmallModel("unet", 18, "dynamo"),
    SmallModel("nsnet2", 13, "torchscript"),
    SmallModel("nsnet2", 17, "torchscript"),
    SmallModel("nsnet2", 21, "dynamo"),
    SmallModel("mlp1024", 13, "torchscript"),
    SmallModel("mlp2048", 18, "dynamo"),
    SmallModel("mlp4096", 21, "dynamo"),
)


def write_small(folder: Path) -> Iterator[Path]:
    """Write all of SMALL into `folder`, giving each path when its file is there."""
    from benchmarks.models.export import write  # needs torch; the table does not

    folder.mkdir(parents=True, exist_ok=True)
    for model in SMALL:
        path = folder / model.file
        yield write(model.name, path, model.opset, True, model.exporter)
