"""Steps that are layers: products, windows, norms, attention, recurrences, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.modules.places import indices

if TYPE_CHECKING:
    from tests.fuzz.modules.draw import Draw


def size(d: Draw) -> int:
    return d.number(1, 6)


def linear(d: Draw) -> str:
    x = d.var("float", 1)
    return f"{d.held(f'nn.Linear({d.width(x, -1)}, {size(d)}, bias={d.flag()})')}({x})"


def product(d: Draw) -> str:
    x = d.var("float", 1)
    width, other = d.width(x, -1), size(d)
    w = d.held(f"nn.Parameter(torch.randn({width}, {other}))")
    return d.pick(
        [
            f"{x} @ {w}",
            f"torch.matmul({w}.T, {x}.mT)",
            f"F.linear({x}, {w}.T)",
            f"torch.tensordot({x}, {w}, 1)",
            f"torch.inner({x}, {w}.T)",
            f"torch.einsum('...i,ij->...j', {x}, {w})",
            f"{x} @ {w}[:, 0]",
            f"torch.addmm({w}[0], {x}, {w}, beta=0.5, alpha=2)",
            f"{w}[:, 0] @ {x}.mT",
            f"torch.einsum('...i,ij->j...', {x}, {w})",
            f"torch.mm({x}, {w})",
        ]
    )


def of_two(d: Draw) -> str:
    a = d.var("float", 1)
    b = d.beside("float", same=True)
    return d.pick(
        [
            f"{a} @ {b}.mT",
            f"{a}.mT @ {b}",
            f"torch.outer({a}.flatten()[:3], {b}.flatten()[:2])",
            f"torch.bmm({a}, {b}.mT)",
            f"torch.einsum('bij,bkj->bik', {a}, {b})",
            f"torch.einsum('bij,bij->bi', {a}, {b})",
            f"torch.einsum('ij,kj->ik', {a}, {b})",
            f"torch.einsum('...ij,...ij->...', {a}, {b})",
            f"torch.einsum('bhij,bhkj->bhik', {a}, {b})",
            f"torch.einsum('ij,ij', {a}, {b})",
            f"torch.einsum('bij,bkl->ijkl', {a}, {b})",
            f"torch.einsum('ii->i', {a} @ {b}.mT)",
            f"torch.baddbmm({a} @ {b}.mT, {a}, {b}.mT, beta=0.5)",
            f"torch.cdist({a}, {b}, p={d.pick([1, 2, 3])})",
            f"torch.linalg.vecdot({a}, {b})",
            f"torch.linalg.multi_dot([{a}, {b}.mT, {a}])",
            f"torch.mv({a}, {b}[0])",
            f"torch.cross({a}[..., :3], {b}[..., :3], dim=-1)",
            f"torch.chain_matmul({a}, {b}.T)",
        ]
    )


def bilinear(d: Draw) -> str:
    x = d.var("float", 2)
    n = d.width(x, -1)
    return (
        f"{d.held(f'nn.Bilinear({n}, {n}, {size(d)})')}({x}, {d.beside('float', True)})"
    )


def convolution(d: Draw) -> str:
    x = d.var("float", 3)
    spatial = d.rank(x) - 2
    channels = d.width(x, 1)
    groups = d.pick([g for g in range(1, channels + 1) if channels % g == 0])
    kernel, stride = d.number(1, 3), d.number(1, 2)
    if d.chance(0.3):
        word = (
            f"nn.ConvTranspose{spatial}d({channels}, {groups * d.number(1, 3)},"
            f" {kernel},"
            f" {stride}, padding={d.number(0, kernel // 2)}, output_padding="
            f"{d.number(0, stride - 1)}, groups={groups}, bias={d.flag()},"
            f" dilation={d.number(1, 2)})"
        )
        return f"{d.held(word)}({x})"
    padding = d.pick([0, 1, 2, "'same'", "'valid'"])
    mode = d.pick(["zeros", "zeros", "zeros", "circular", "reflect", "replicate"])
    word = (
        f"nn.Conv{spatial}d({channels}, {groups * d.number(1, 3)}, {kernel},"
        f" stride={1 if padding == chr(39) + 'same' + chr(39) else stride},"
        f" padding={padding}, dilation={d.number(1, 2)}, groups={groups},"
        f" bias={d.flag()}, padding_mode='{mode}')"
    )
    return f"{d.held(word)}({x}{'[0]' if d.chance(0.1) else ''})"


def pool(d: Draw) -> str:
    x = d.var("", 3)
    n = d.rank(x) - 2
    kernel = d.number(1, 3)
    said = f"{kernel}, stride={d.number(1, 3)}, padding={d.number(0, kernel // 2)}"
    ceil = f"ceil_mode={d.flag()}"
    return d.pick(
        [
            f"F.max_pool{n}d({x}, {said}, dilation={d.number(1, 2)}, {ceil})",
            f"F.max_pool{n}d({x}, {said}, {ceil}, return_indices=True)",
            f"F.avg_pool{n}d({x}, {said}, {ceil}, count_include_pad={d.flag()})",
            f"F.avg_pool{n}d({x}, {kernel}, divisor_override=3)",
            f"F.lp_pool{n}d({x}, 2, {kernel})",
            f"F.adaptive_avg_pool{n}d({x}, {d.number(1, 4)})",
            f"F.adaptive_max_pool{n}d({x}, {d.number(1, 4)})",
            f"F.adaptive_avg_pool{n}d({x}, 1)",
            f"F.max_unpool2d(*F.max_pool2d({x}, 2, return_indices=True), 2)",
        ]
    )


def norm(d: Draw) -> str:
    x = d.var("float", 2)
    rank, last, channels = d.rank(x), d.width(x, -1), d.width(x, 1)
    groups = d.pick([g for g in range(1, channels + 1) if channels % g == 0])
    n = max(rank - 2, 1)
    word = d.pick(
        [
            f"nn.LayerNorm({last}, elementwise_affine={d.flag()})",
            f"nn.RMSNorm({last})",
            f"nn.LayerNorm({last}, eps=1e-3, bias={d.flag()})",
            f"nn.BatchNorm{n}d({channels})",
            f"nn.BatchNorm{n}d({channels}, affine={d.flag()})",
            f"nn.BatchNorm{n}d({channels}, track_running_stats=False)",
            f"nn.GroupNorm({groups}, {channels}, affine={d.flag()})",
            f"nn.InstanceNorm{n}d({channels}, affine={d.flag()})",
            f"nn.InstanceNorm{n}d({channels}, track_running_stats=True)",
            f"nn.RMSNorm({last}, eps=0.1, elementwise_affine=False)",
            f"nn.LocalResponseNorm({d.number(1, 3)})",
            f"nn.PReLU({channels})",
            "nn.PReLU()",
        ]
    )
    return f"{d.held(word)}({x})"


def attention(d: Draw) -> str:
    q = d.var("float", 2)
    k = d.beside("float", same=True) if d.flag() else q
    length = f"{q}.shape[-2]"
    ones = f"torch.ones({length}, {length}, dtype=torch.bool)"
    last = f"torch.zeros({length}).masked_fill(torch.arange({length}) > 1, -torch.inf)"
    twice, kv = f"torch.cat([{k}, {k}], -2)", f"{k}[:, None].repeat_interleave(2, 1)"
    given = d.pick([
        f"{q}, {k}, {k}", f"{q}, {k}, {k}, is_causal=True",
        f"{q}, {k}, {k}, attn_mask={ones}.tril({d.number(-1, 1)}), scale=0.3",
        f"{q}, {k}, {k}, attn_mask=({q} @ {k}.mT > 0)",
        f"{q}, {k}, {k}[..., :2], attn_mask={q} @ {k}.mT",
        f"{q}[:, None].repeat_interleave(4, 1), {kv}, {kv}, enable_gqa=True",
        f"{q}[:, None].repeat(1, 4, 1, 1), {kv}, {kv}, enable_gqa=True, is_causal=True",
        f"{q}, {twice}, {twice}, is_causal={d.flag()}",
        f"{q}[..., :1, :], {k}, {k}, attn_mask={last}.to({q}.dtype)",
    ])  # fmt: skip
    return f"F.scaled_dot_product_attention({given})"


def heads(d: Draw) -> str:
    x = d.var("float", 2, 3)
    width = d.width(x, -1)
    count = d.pick([h for h in range(1, width + 1) if width % h == 0])
    way = d.number(0, 4)
    if way < 3:
        m = d.held(
            f"nn.MultiheadAttention({width}, {count}, batch_first={d.flag()},"
            f" bias={d.flag()}, add_bias_kv={d.chance(0.2)},"
            f" add_zero_attn={d.chance(0.2)})"
        )
        return f"{m}({x}, {x}, {x}, need_weights={d.flag()})[0]"
    said = f"{width}, {count}, 5, activation='{d.pick(['relu', 'gelu'])}'"
    said += f", batch_first={d.flag()}, norm_first={d.flag()}"
    if way == 3:
        return f"{d.held(f'nn.TransformerEncoderLayer({said})')}({x})"
    return f"{d.held(f'nn.TransformerDecoderLayer({said})')}({x}, {x})"


def recurrence(d: Draw) -> str:
    x = d.var("float", 2, 3)
    width, hidden = d.width(x, -1), d.number(2, 5)
    kind = d.pick(["LSTM", "LSTM", "GRU", "RNN"])
    said = (
        f"{width}, {hidden}, {d.number(1, 2)}, bias={d.flag()}, batch_first={d.flag()},"
        f" bidirectional={d.flag()}"
    )
    if kind == "LSTM" and d.chance(0.4):
        said += f", proj_size={d.number(1, hidden - 1)}"
    if kind == "RNN":
        said += f", nonlinearity='{d.pick(['tanh', 'relu'])}'"
    m = d.held(f"nn.{kind}({said})")
    if kind == "LSTM" or d.flag():
        return f"{m}({x})"
    ran = f"{m}({x})[1]"  # the state behind one run is that in front of the next
    return f"{m}({x}, {ran} * 0.5)"


def cell(d: Draw) -> str:
    x = d.var("float", 1, 2)
    kind = d.pick(["LSTMCell", "GRUCell", "RNNCell"])
    return f"{d.held(f'nn.{kind}({d.width(x, -1)}, {size(d)}, bias={d.flag()})')}({x})"


def embedding(d: Draw) -> str:
    at = indices(d, "7", negative=False)
    if d.flag():
        return f"{d.held(f'nn.Embedding(7, {size(d)}, padding_idx=2)')}({at})"
    mode = d.pick(["sum", "mean", "max"])
    m = d.held(
        f"nn.EmbeddingBag(7, {size(d)}, mode='{mode}', include_last_offset={d.flag()})"
    )
    if d.flag():
        return f"{m}({at}.reshape(1, -1))"
    return f"{m}({at}.flatten(), torch.tensor([0, 1]))"


def resize(d: Draw) -> str:
    x = d.var("float", 3)
    n = d.rank(x) - 2
    smooth = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[n]
    mode = d.pick([*smooth, *smooth, "nearest", "nearest-exact", "area"])
    factor = d.pick([2, 0.5, 1.7, 0.6, 3])
    said = f"size={d.number(1, 7)}" if d.flag() else f"scale_factor={factor}"
    if said.startswith("scale") and d.flag():
        said += ", recompute_scale_factor=True"
    if mode in smooth:
        said += f", align_corners={d.flag()}"
        if n == 2 and d.chance(0.2):
            said += ", antialias=True"
    return f"F.interpolate({x}, mode='{mode}', {said})"


def sampled(d: Draw) -> str:
    x = d.var("float", 4, 4)
    theta = d.held("nn.Parameter(torch.randn(1, 2, 3) * 0.7)")
    corners = d.flag()
    grid = (
        f"F.affine_grid({theta}.expand({x}.shape[0], 2, 3), ({x}.shape[0], 1, 4, 3),"
        f" align_corners={corners})"
    )
    mode = d.pick(["bilinear", "nearest", "bicubic"])
    padding = d.pick(["zeros", "border", "reflection"])
    return (
        f"F.grid_sample({x}, {grid}, mode='{mode}', padding_mode='{padding}',"
        f" align_corners={corners})"
    )


def loss(d: Draw) -> str:
    x = d.var("float", 2, 4)
    classes = d.width(x, 1)
    how = d.pick(["mean", "sum", "none"])
    at = f"({x}.argsort(1)[:, 0])"
    if d.chance(0.3):
        at = f"{at}.masked_fill({at} == 0, -100)"
    w = d.held(f"nn.Parameter(torch.rand({classes}) + 0.1)")
    return d.pick(
        [
            f"F.cross_entropy({x}, {at}, reduction='{how}')",
            f"F.cross_entropy({x}, {at}, weight={w}, label_smoothing=0.2)",
            f"F.nll_loss({x}.log_softmax(1), {at}, weight={w}, reduction='{how}')",
            f"F.cross_entropy({x}, {x}.softmax(1))",
            f"F.multi_margin_loss({x}, {at})",
            f"F.multilabel_soft_margin_loss({x}, ({x} > 0).to({x}.dtype))",
            f"F.cosine_embedding_loss({x}, {x} * 2, torch.ones({x}.shape[0]))",
        ]
    )


LAYERS = (
    linear,
    linear,
    linear,
    product,
    product,
    of_two,
    of_two,
    bilinear,
    convolution,
    convolution,
    convolution,
    pool,
    pool,
    pool,
    norm,
    norm,
    norm,
    attention,
    attention,
    attention,
    heads,
    heads,
    recurrence,
    recurrence,
    cell,
    embedding,
    embedding,
    resize,
    resize,
    sampled,
    loss,
)
