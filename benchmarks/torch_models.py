"""Models of PyTorch by name, with seeded weights, and arguments for a call."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch  # pyright: ignore[reportMissingImports] - an extra
import transformers  # pyright: ignore[reportMissingImports] - an extra
from torch import nn  # pyright: ignore[reportMissingImports] - an extra

Made = tuple[Any, tuple[Any, ...]]


class Only(nn.Module):
    """A model of transformers that is called with one tensor and gives one."""

    def __init__(self, model: Any, argument: str, **said: Any) -> None:
        super().__init__()
        self.model, self.argument, self.said = model, argument, said

    def forward(self, x: Any) -> Any:
        return self.model(**{self.argument: x}, **self.said, return_dict=False)[0]


def text(model: str, config: str, **sizes: Any) -> Callable[[], Made]:
    def made() -> Made:
        chosen = getattr(transformers, config)(**sizes)
        ids = torch.randint(0, 1000, (1, 128))
        return Only(getattr(transformers, model)(chosen), "input_ids"), (ids,)

    return made


def image(model: str, config: str, size: int = 224, **sizes: Any) -> Callable[[], Made]:
    def made() -> Made:
        chosen = getattr(transformers, config)(**sizes)
        x = torch.randn(1, 3, size, size)
        return Only(getattr(transformers, model)(chosen), "pixel_values"), (x,)

    return made


def drawn_wide(make: Callable[[], Made]) -> Callable[[], Made]:
    """The same with He's weights and plain statistics: as made, deep values are 0."""

    def made() -> Made:
        module, args = make()
        for part in module.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight)
            elif isinstance(part, nn.BatchNorm2d):
                part.reset_parameters()
        return module, args

    return made


class UNet(nn.Module):
    """Down and up again in steps of two, with the levels' own values beside."""

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 256)) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.first = block(3, widths[0])
        self.down = nn.ModuleList(block(a, b) for a, b in pairs)
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs)
        )
        self.join = nn.ModuleList(block(2 * a, a) for a, _ in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Any) -> Any:
        levels = [self.first(x)]
        for step in self.down:
            levels.append(step(nn.functional.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([up(x), levels.pop()], 1))
        return self.last(x)


def block(a: int, b: int) -> nn.Sequential:
    layers = [nn.Conv2d(a, b, 3, 1, 1), nn.BatchNorm2d(b), nn.ReLU(),
              nn.Conv2d(b, b, 3, 1, 1), nn.BatchNorm2d(b), nn.ReLU()]  # fmt: skip
    return nn.Sequential(*layers)


class Recurrent(nn.Module):
    """An LSTM whose steps are written out: `nn.LSTM` itself is no graph of Dynamo's."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x: Any) -> Any:
        h = c = torch.zeros_like(x[0])
        for row in self.x(x):
            i, f, g, o = (row + self.h(h)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h


class Decoder(nn.Module):
    """One token of a small Llama, whose keys and values are written in place.

    Always at the same place: the cache counts its tokens, and more calls are timed than
    it has room for.
    """

    def __init__(self) -> None:
        super().__init__()
        config = transformers.LlamaConfig(
            hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
            intermediate_size=1376, vocab_size=8000, num_key_value_heads=4,
        )  # fmt: skip
        self.model = transformers.LlamaForCausalLM(config)
        self.cache = transformers.StaticCache(config, max_cache_len=256)
        self.cache.early_initialization(1, 4, 64, torch.float32, torch.device("cpu"))

    def forward(self, ids: Any, position: Any) -> Any:
        for layer in self.cache.layers:
            layer.cumulative_length.copy_(position)
        return self.model(ids, past_key_values=self.cache, use_cache=True,
                          return_dict=False)[0]  # fmt: skip


def decoder() -> Made:
    return Decoder(), (torch.randint(0, 8000, (1, 1)), torch.tensor(17))


def whisper() -> Made:
    config = transformers.WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536
    )
    encoder = transformers.WhisperModel(config).encoder
    return Only(encoder, "input_features"), (torch.randn(1, 80, 3000),)


MODELS: dict[str, Callable[[], Made]] = {
    "bert-base": text("BertModel", "BertConfig"),
    "distilbert": text("DistilBertModel", "DistilBertConfig"),
    "vit-base": image("ViTModel", "ViTConfig"),
    "swin-tiny": image("SwinModel", "SwinConfig"),
    "convnext-tiny": image("ConvNextModel", "ConvNextConfig"),
    "resnet50": image("ResNetModel", "ResNetConfig"),
    "mobilenet_v2": image("MobileNetV2Model", "MobileNetV2Config"),
    "efficientnet_b0": drawn_wide(image(
        "EfficientNetModel", "EfficientNetConfig", width_coefficient=1.0,
        depth_coefficient=1.0, hidden_dim=1280,
    )),
    "unet": lambda: (UNet(), (torch.randn(1, 3, 128, 128),)),
    "lstm": lambda: (Recurrent(), (torch.randn(32, 1, 128),)),
    "llama": decoder,
    "whisper": whisper,
}  # fmt: skip


def model(name: str) -> Made:
    torch.manual_seed(0)
    made, args = MODELS[name]()
    return made.eval(), args
