"""Networks for images of timm, random weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.zoo.entry import Entry
from benchmarks.zoo.runtime_exports import with_tool
from benchmarks.zoo.torch_exports import Inputs, exported, floats

# With the sides of their images where it is not 64, which is quick.
NAMES = """
resnet18 resnet26d resnet50 resnext26ts seresnet18 ecaresnet26t resnetv2_50 skresnet18
wide_resnet50_2 res2net50_26w_4s densenet121 vgg11_bn dpn68 xception41 inception_v3:96
inception_v4:96 nasnetalarge:96 pnasnet5large:96 mobilenetv2_050 mobilenetv3_small_050
mobilenetv4_conv_small efficientnet_b0 efficientnet_lite0 efficientnetv2_rw_t
tf_efficientnetv2_b0 mixnet_s mnasnet_050 fbnetc_100 spnasnet_100 tinynet_e
ghostnet_050 ghostnetv2_100 hardcorenas_a lcnet_035 semnasnet_075 regnetx_002
regnety_002 regnetz_b16 rexnet_100 dla34 hrnet_w18_small cspresnet50 cspdarknet53
darknet53 selecsls42b repvgg_a0 repghostnet_050 hgnet_tiny hgnetv2_b0 convnext_atto
convnext_femto convnextv2_atto convmixer_768_32 convformer_s18 caformer_s18
poolformer_s12 poolformerv2_s12 convnext_pico metaformer:0 fastvit_t8 mobileone_s0
edgenext_xx_small mobilevit_xxs mobilevitv2_050 inception_next_atto focalnet_tiny_srf
vovnet39a ese_vovnet19b_slim nfnet_f0 dm_nfnet_f0 eca_nfnet_l0 nf_resnet26 gernet_s
resnest14d halonet26t:256 botnet26t_256:256 lambda_resnet26t:256
eca_botnext26ts_256:256 bat_resnext26ts:256 gcresnet33ts lamhalobotnet50ts_256:256
vit_tiny_patch16_224:224 deit_tiny_patch16_224:224 deit3_small_patch16_224:224
beit_base_patch16_224:224 cait_xxs24_224:224 crossvit_tiny_240:240 coat_tiny:224
coat_lite_tiny:224 convit_tiny:224 levit_128s:224 pit_ti_224:224 tnt_s_patch16_224:224
twins_pcpvt_small:224 twins_svt_small:224 swin_tiny_patch4_window7_224:224
swinv2_tiny_window8_256:256 swin_s3_tiny_224:224 volo_d1_224:224
xcit_nano_12_p16_224:224 mixer_s32_224:224 resmlp_12_224:224 gmixer_24_224:224
gmlp_ti16_224:224 maxvit_rmlp_pico_rw_256:256 maxvit_tiny_rw_224:224
coatnet_pico_rw_224:224 nest_tiny:224 visformer_tiny:224 sequencer2d_s:224
pvt_v2_b0:224 davit_tiny:224 gcvit_xxtiny:224 efficientformer_l1:224
efficientformerv2_s0:224 efficientvit_b0:224 efficientvit_m0:224 repvit_m0_9:224
tiny_vit_5m_224:224 eva02_tiny_patch14_224:224 hiera_tiny_224:224 hieradet_small:224
flexivit_small:240 mvitv2_tiny:224 nextvit_small:224 rdnet_tiny:224 starnet_s1
shvit_s1 swiftformer_xs:224 tresnet_m:64 vitamin_small_224:224 samvit_base_patch16:0
"""
WAYS = (
    "dynamo",
    "script-dynamic",
    "dynamo-dynamic",
    "script",
    "export",
    "export-dynamic",
)


def build(name: str, side: int) -> tuple[torch.nn.Module, Inputs]:
    import timm

    return timm.create_model(name), {"_": floats(2, 3, side, side)}


def entries() -> Iterator[Entry]:
    listed = [word.partition(":") for word in NAMES.split()]
    chosen = [(name, int(side or 64)) for name, _, side in listed if side != "0"]
    for place, (name, side) in enumerate(chosen):
        way = WAYS[place % len(WAYS)]
        make = partial(exported, partial(build, name, side), way)
        yield Entry("timm", name, way, make)
        if place % 4 == 0:
            whole = partial(exported, partial(build, name, side), "script")
            tool = ("optimized", "qdq", "int8")[place // 4 % 3]
            yield Entry("timm", name, f"script+{tool}", with_tool(whole, tool))
