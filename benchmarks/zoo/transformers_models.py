"""Small networks of transformers' configurations, random weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from benchmarks.zoo.entry import Entry
from benchmarks.zoo.runtime_exports import with_tool
from benchmarks.zoo.torch_exports import Inputs, exported, floats, integers

# Sizes by the names that configurations have for them; a config takes those it knows.
SMALL: dict[str, Any] = {
    "hidden_size": 64, "d_model": 64, "dim": 64, "n_embd": 64, "emb_dim": 64,
    "embedding_size": 64, "projection_dim": 64, "word_embed_proj_dim": 64,
    "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "n_layers": 2,
    "encoder_layers": 2, "decoder_layers": 2, "num_attention_heads": 4, "num_heads": 4,
    "n_head": 4, "n_heads": 4, "num_key_value_heads": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "intermediate_size": 128, "d_ff": 128,
    "hidden_dim": 128, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "ffn_dim": 128,
    "d_kv": 16, "head_dim": 16, "vocab_size": 500, "max_position_embeddings": 64,
    "n_positions": 64, "n_inner": 128, "image_size": 64, "patch_size": 16,
    "use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "ffn_hidden_size": 128, "num_experts": 4, "num_local_experts": 4,
    "num_experts_per_tok": 2, "n_routed_experts": 4, "moe_intermediate_size": 64,
    "rotary_dim": 16, "d_inner": 128, "qk_rope_head_dim": 16, "n_group": 1,
    "topk_group": 1, "state_size": 16, "attention_window": 8,
}  # fmt: skip
# Where these sizes contradict each other.
OWN: dict[str, dict[str, Any]] = {
    "Lilt": {"hidden_size": 96},
    "GPTNeo": {"attention_types": [[["global", "local"], 1]]},
    "Mamba2": {"num_heads": 8},
    "DeepseekV2": {"num_key_value_heads": 4},
    "DeepseekV3": {"num_key_value_heads": 4},
    "Dots1": {"n_shared_experts": 1},
}
# A model's class, which knows its configuration, and what else the latter says.
TEXTS = """
Bert Roberta DistilBert Albert Electra MPNet ConvBert Deberta DebertaV2 MobileBert
SqueezeBert CamembertModel:Camembert XLMRoberta Ernie NomicBert ModernBert FNet
YosoModel:Yoso Nystromformer RoFormer MegatronBert LayoutLM Splinter RemBert BigBird
Longformer Funnel XLNet XLM Flaubert IBert MRA:Mra LiltModel:Lilt EuroBert
DataTwo:Data2VecText GPT2 GPTNeo GPTNeoX GPTJ OPT Bloom Llama Mistral Mixtral Qwen2
Qwen3 Qwen2Moe Gemma Gemma2 Gemma3Text:Gemma3Text Phi Phi3 Falcon MPT:Mpt StableLm
Starcoder2 CodeGen Olmo Olmo2 Cohere Persimmon Granite Mamba Mamba2 Rwkv JetMoe
DeepseekV2 DeepseekV3 SmolLM3 Glm Glm4 Nemotron Helium BioGpt XGLM CTRL Bamba
OpenAIGPT Ministral Arcee Ernie4_5 Dots1 Exaone4 Lfm2 RecurrentGemma
"""
IMAGES = """
ViT DeiT Beit Swin Swinv2 ConvNext ConvNextV2 ResNet RegNet MobileNetV1 MobileNetV2
MobileViT MobileViTV2 Segformer PoolFormer LevitModel:Levit Dinov2 PvtV2 Pvt Bit Cvt
FocalNet EfficientNet Hiera ViTMSN PoolFormer Dinov2WithRegisters IJepa
SwiftFormer TextNet
"""
WAYS = (
    "dynamo",
    "export",
    "script-dynamic",
    "dynamo-dynamic",
    "script",
    "export-dynamic",
)


def configured(name: str) -> torch.nn.Module:
    import transformers

    cls = getattr(transformers, f"{name}Model")
    config_class = cls.config_class
    known = set(config_class().to_dict())
    sizes = {k: v for k, v in SMALL.items() if k in known} | OWN.get(name, {})
    config = config_class(**sizes)
    config._attn_implementation = "eager"
    return cls(config)


def text(name: str) -> tuple[torch.nn.Module, Inputs]:
    return configured(name), {"input_ids": integers(500, 2, 12)}


def image(name: str) -> tuple[torch.nn.Module, Inputs]:
    import transformers

    cls = getattr(transformers, f"{name}Model")
    config = cls.config_class()
    fixed = hasattr(config, "window_size") or name in ("Levit", "Pvt", "Hiera")
    side = 224 if fixed else 64
    own = {k: v for k, v in (("hidden_size", 64), ("intermediate_size", 128),
                             ("num_hidden_layers", 2), ("num_attention_heads", 4))
           if isinstance(getattr(config, k, None), int)
           and not hasattr(config, "hidden_sizes")}  # fmt: skip
    if "num_hidden_layers" in own and hasattr(config, "patch_size"):
        config = cls.config_class(**own, image_size=side)
    return cls(config), {"pixel_values": floats(2, 3, side, side)}


def entries() -> Iterator[Entry]:
    place = 0
    for names, make in ((TEXTS, text), (IMAGES, image)):
        for word in dict.fromkeys(names.split()):
            name = word.partition(":")[2] or word
            build, way = partial(make, name), WAYS[place % len(WAYS)]
            yield Entry("transformers", name, way, partial(exported, build, way))
            if place % 4 == 0:
                tool = ("optimized", "int8", "qdq")[place // 4 % 3]
                whole = with_tool(partial(exported, build, "script"), tool)
                yield Entry("transformers", name, f"script+{tool}", whole)
            place += 1
