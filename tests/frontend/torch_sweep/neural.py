# SPDX-License-Identifier: Apache-2.0
"""Products, convolutions, pools, norms, interpolation, padding, losses, attention and recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

from .calls import Call, Function

PRODUCTS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "matmul": (
        torch.matmul,
        (
            "f32[3,4] f32[4,5]",
            "f32[4] f32[4]",
            "f32[4] f32[4,5]",
            "f32[2,3,4] f32[4]",
            "f32[2,1,3,4] f32[5,4,2]",
            "f64[3,4] f64[4,5]",
            "f16[3,40] f16[40,5]",
            "bf16[3,40] bf16[40,5]",
            "f32[4,3].t f32[5,4].t",
            "i32[3,4] i32[4,5]",
            "i64[3,4] i64[4,5]",
            "f32[3,0] f32[0,2]",
            "f32[0,3] f32[3,2]",
        ),
    ),
    "mm": (torch.mm, ("f32[3,4] f32[4,5]",)),
    "bmm": (torch.bmm, ("f32[2,3,4] f32[2,4,5]", "f16[2,3,4] f16[2,4,5]")),
    "mv": (torch.mv, ("f32[3,4] f32[4]",)),
    "outer": (torch.outer, ("f32[3] f32[4]", "i32[3] i32[2]")),
    "inner": (torch.inner, ("f32[3,4] f32[2,4]",)),
    "kron": (torch.kron, ("f32[2,3] f32[3,2]",)),
    "tensordot": (lambda x, y: torch.tensordot(x, y, 2), ("f32[2,3,4] f32[3,4,5]",)),
    "cross": (lambda x, y: torch.linalg.cross(x, y), ("f32[5,3] f32[5,3]",)),
    "vdot": (torch.vdot, ("f32[5] f32[5]",)),
    "addmm": (
        lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2),
        ("f32[5] f32[3,4] f32[4,5]", "f16[3,5] f16[3,4] f16[4,5]"),
    ),
    "addmm without bias": (lambda x, y, z: torch.addmm(x, y, z, beta=0), ("f32[5]:nan f32[3,4] f32[4,5]",)),
    "addmv": (lambda x, y, z: torch.addmv(x, y, z, alpha=2), ("f32[3] f32[3,4] f32[4]",)),
    "addr": (lambda x, y, z: torch.addr(x, y, z, alpha=2), ("f32[3,4] f32[3] f32[4]",)),
    "baddbmm": (
        lambda x, y, z: torch.baddbmm(x, y, z, beta=0.5, alpha=2),
        ("f32[3,5] f32[2,3,4] f32[2,4,5]",),
    ),
    "addbmm": (lambda x, y, z: torch.addbmm(x, y, z, beta=0.5, alpha=2), ("f32[3,5] f32[2,3,4] f32[2,4,5]",)),
    "linear": (F.linear, ("f32[2,3,4] f32[5,4] f32[5]", "f16[3,4] f16[5,4] f16[5]", "f32[4] f32[5,4]")),
    "bilinear": (F.bilinear, ("f32[6,3] f32[6,4] f32[5,3,4] f32[5]",)),
    "einsum": (lambda x, y: torch.einsum("bik,bkj->bji", x, y), ("f32[2,3,4] f32[2,4,5]",)),
    "einsum diagonal": (lambda x: torch.einsum("bii->bi", x), ("f32[2,4,4]",)),
    "einsum outer": (lambda x, y: torch.einsum("i,j->ij", x, y), ("f32[3] f32[4]",)),
    "chain_matmul": (lambda x, y, z: torch.linalg.multi_dot([x, y, z]), ("f32[3,4] f32[4,5] f32[5,2]",)),
    "matrix_power": (lambda x: torch.matrix_power(x, 3), ("f32[4,4]",)),
}

IMAGE, SEQUENCE, VOLUME = "f32[2,4,9,10]", "f32[2,4,12]", "f32[1,2,5,6,7]"
CONVOLUTIONS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "conv1d": (F.conv1d, (f"{SEQUENCE} f32[6,4,3] f32[6]", "f16[2,4,12] f16[6,4,3] f16[6]")),
    "conv1d long": (F.conv1d, ("f16[1,200,20] f16[4,200,9] f16[4]", "bf16[1,200,20] bf16[4,200,9] bf16[4]")),
    "conv3d of half": (F.conv3d, ("f16[1,20,5,6,7] f16[3,20,3,3,3]", "f64[1,2,5,6,7] f64[3,2,3,3,3]")),
    "conv1d options": (
        lambda x, w: F.conv1d(x, w, stride=2, padding=3, dilation=2, groups=2),
        (f"{SEQUENCE} f32[6,2,3]",),
    ),
    "conv2d": (
        F.conv2d,
        (
            f"{IMAGE} f32[6,4,3,3] f32[6]",
            "f16[2,4,9,10] f16[6,4,3,3] f16[6]",
            "f64[2,4,9,10] f64[6,4,3,3] f64[6]",
            "f32[4,9,10] f32[6,4,3,3]",
            "f32[0,4,9,10] f32[6,4,3,3]",
        ),
    ),
    "conv2d options": (
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        (f"{IMAGE} f32[6,4,3,2] f32[6]",),
    ),
    "conv2d groups": (lambda x, w: F.conv2d(x, w, groups=2, padding=1), (f"{IMAGE} f32[6,2,3,3]",)),
    "conv2d depthwise": (lambda x, w: F.conv2d(x, w, groups=4), (f"{IMAGE} f32[8,1,3,3]",)),
    "conv2d same": (lambda x, w: F.conv2d(x, w, padding="same", dilation=2), (f"{IMAGE} f32[6,4,3,2]",)),
    "conv3d": (lambda x, w, b: F.conv3d(x, w, b, padding=1), (f"{VOLUME} f32[3,2,3,3,3] f32[3]",)),
    "conv_transpose1d": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1),
        (f"{SEQUENCE} f32[4,3,3] f32[3]", "f16[2,4,12] f16[4,3,3] f16[3]", "f64[2,4,12] f64[4,3,3] f64[3]"),
    ),
    "conv_transpose2d": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        (f"{IMAGE} f32[4,3,3,3] f32[3]", "f16[2,4,9,10] f16[4,3,3,3] f16[3]"),
    ),
    "conv_transpose2d groups": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, groups=2),
        (f"{IMAGE} f32[4,3,2,2]",),
    ),
    "conv_transpose2d dilated": (
        lambda x, w: F.conv_transpose2d(x, w, dilation=2),
        (f"{IMAGE} f32[4,3,2,2]",),
    ),
    "conv_transpose3d": (lambda x, w: F.conv_transpose3d(x, w, stride=2), (f"{VOLUME} f32[2,3,2,2,2]",)),
    "fold": (lambda x: F.fold(x, (4, 5), (2, 2)), ("f32[2,12,12]",)),
    "unfold": (lambda x: F.unfold(x, (2, 3), padding=1, stride=2), (IMAGE,)),
}

POOLS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), (SEQUENCE, "f16[2,4,12]")),
    "avg_pool1d exclusive": (lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), (SEQUENCE,)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (IMAGE, "f16[2,4,9,10]", "f32[4,9,10]")),
    "avg_pool2d divisor": (lambda x: F.avg_pool2d(x, (3, 2), divisor_override=5), (IMAGE, "f64[2,4,9,10]")),
    "avg_pool2d padded divisor": (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=2), (IMAGE,)),
    "avg_pool2d ceil": (lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True), (IMAGE,)),
    "avg_pool2d ceil padded": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (IMAGE, "f32[1,1,10,7]")),
    "avg_pool2d ceil exclusive": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        (IMAGE, "f32[1,1,10,7]"),
    ),
    "avg_pool2d exclusive": (lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), (IMAGE,)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, padding=1), (VOLUME,)),
    "avg_pool3d divisor": (lambda x: F.avg_pool3d(x, 2, divisor_override=3), (VOLUME,)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2.0, 2), (IMAGE,)),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 5), (SEQUENCE,)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), (IMAGE, "f16[2,4,9,10]")),
    "adaptive_avg_pool2d 1": (lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE, "f16[2,4,90,10]:pos")),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), (VOLUME,)),
}

MAX_POOLS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), (SEQUENCE, "f32[2,4,12]:ninf", "f32[2,12]")),
    "max_pool2d": (
        lambda x: F.max_pool2d(x, 3, 2, 1),
        (
            IMAGE,
            "f32[2,4,9,10]:ninf",
            "f32[2,4,9,10]:nan",
            "f16[2,4,9,10]",
            "f32[4,9,10]",
            "f64[2,4,9,10]:ninf",
        ),
    ),
    "max_pool2d ceil": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (IMAGE,)),
    "max_pool2d dilated": (lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2), (IMAGE,)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2, padding=1), (VOLUME,)),
    "max_pool1d indices": (lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), (SEQUENCE,)),
    "max_pool2d indices": (
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        (IMAGE, "f32[2,4,9,10]:ninf", "f32[1,4,9,10]:mixed", "f16[2,4,9,10]"),
    ),
    "max_pool2d indices ceil": (
        lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True, return_indices=True),
        (IMAGE,),
    ),
    "max_pool2d indices dilated": (
        lambda x: F.max_pool2d(x, 2, 1, dilation=2, return_indices=True)[1],
        (IMAGE,),
    ),
    "max_pool3d indices": (lambda x: F.max_pool3d(x, 2, return_indices=True), (VOLUME,)),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 5), (SEQUENCE,)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (3, 4)), (IMAGE,)),
    "adaptive_max_pool2d indices": (
        lambda x: F.adaptive_max_pool2d(x, (3, 4), return_indices=True),
        (IMAGE,),
    ),
    "max_unpool2d": (
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
        ("f32[2,4,8,10]",),
    ),
    "max_unpool3d": (
        lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2),
        ("f32[1,2,4,6,4]",),
    ),
    "max_unpool1d": (lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2), (SEQUENCE,)),
}

RESIZES: dict[str, tuple[Function, tuple[str, ...]]] = {
    "nearest to 13,17": (lambda x: F.interpolate(x, (13, 17)), ("f32[2,3,10,12]", "f16[2,3,10,12]")),
    "nearest by 2": (lambda x: F.interpolate(x, scale_factor=2), ("f32[2,3,5,6]",)),
    "nearest by 1.7": (lambda x: F.interpolate(x, scale_factor=1.7), ("f32[2,3,10,12]",)),
    "nearest down": (lambda x: F.interpolate(x, (4, 5)), ("f32[2,3,10,12]",)),
    "nearest 1d": (lambda x: F.interpolate(x, 7), (SEQUENCE,)),
    "nearest 3d": (lambda x: F.interpolate(x, (7, 4, 9)), (VOLUME,)),
    "nearest-exact": (lambda x: F.interpolate(x, (13, 17), mode="nearest-exact"), ("f32[2,3,10,12]",)),
    "nearest-exact 1d": (lambda x: F.interpolate(x, 7, mode="nearest-exact"), (SEQUENCE,)),
    "linear": (lambda x: F.interpolate(x, 17, mode="linear"), (SEQUENCE,)),
    "bilinear": (lambda x: F.interpolate(x, (13, 17), mode="bilinear"), ("f32[2,3,10,12]", "f16[2,3,10,12]")),
    "bilinear by 1.7": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), ("f32[2,3,10,12]",)),
    "bilinear recomputed": (
        lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        ("f32[2,3,10,12]",),
    ),
    "bilinear aligned": (
        lambda x: F.interpolate(x, (13, 17), mode="bilinear", align_corners=True),
        ("f32[2,3,10,12]",),
    ),
    "bilinear down": (lambda x: F.interpolate(x, (4, 5), mode="bilinear"), ("f32[2,3,10,12]",)),
    "bilinear antialias": (
        lambda x: F.interpolate(x, (4, 5), mode="bilinear", antialias=True),
        ("f32[2,3,10,12]",),
    ),
    "bilinear antialias up": (
        lambda x: F.interpolate(x, (13, 17), mode="bilinear", antialias=True),
        ("f32[2,3,10,12]",),
    ),
    "bicubic": (lambda x: F.interpolate(x, (13, 17), mode="bicubic"), ("f32[2,3,10,12]",)),
    "bicubic aligned": (
        lambda x: F.interpolate(x, (7, 5), mode="bicubic", align_corners=True),
        ("f32[2,3,10,12]",),
    ),
    "bicubic antialias": (
        lambda x: F.interpolate(x, (4, 5), mode="bicubic", antialias=True),
        ("f32[2,3,10,12]",),
    ),
    "trilinear": (lambda x: F.interpolate(x, (7, 4, 9), mode="trilinear"), (VOLUME,)),
    "area": (lambda x: F.interpolate(x, (4, 5), mode="area"), ("f32[2,3,10,12]",)),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        ("f32[2,3,5,6] f32[2,4,3,2]:unit",),
    ),
    "grid_sample nearest": (
        lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=True),
        ("f32[2,3,5,6] f32[2,4,3,2]:unit",),
    ),
    "grid_sample border": (
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True),
        ("f32[2,3,5,6] f32[2,4,3,2]",),
    ),
    "grid_sample reflection": (
        lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=False),
        ("f32[2,3,5,6] f32[2,4,3,2]",),
    ),
    "affine_grid": (lambda t: F.affine_grid(t, (2, 3, 4, 5), align_corners=False), ("f32[2,2,3]",)),
}

PADDING: dict[str, tuple[Function, tuple[str, ...]]] = {
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3)), (IMAGE, "i32[3,4]", "bool[3,4]", "f32[0,4]")),
    "pad value": (lambda x: F.pad(x, (1, 2), value=1.5), (SEQUENCE, "f16[3,4]")),
    "pad -inf": (lambda x: F.pad(x, (1, 2), value=-torch.inf), (SEQUENCE,)),
    "pad negative": (lambda x: F.pad(x, (-1, 2, 1, -3)), (IMAGE,)),
    "pad reflect 1d": (lambda x: F.pad(x, (2, 3), mode="reflect"), (SEQUENCE,)),
    "pad reflect": (lambda x: F.pad(x, (2, 3, 1, 4), mode="reflect"), (IMAGE,)),
    "pad reflect 3d": (lambda x: F.pad(x, (1, 2, 1, 1, 2, 0), mode="reflect"), (VOLUME,)),
    "pad replicate 1d": (lambda x: F.pad(x, (2, 3), mode="replicate"), (SEQUENCE,)),
    "pad replicate": (lambda x: F.pad(x, (2, 3, 1, 4), mode="replicate"), (IMAGE,)),
    "pad replicate 3d": (lambda x: F.pad(x, (1, 2, 1, 1, 2, 0), mode="replicate"), (VOLUME,)),
    "pad circular": (lambda x: F.pad(x, (2, 3, 1, 4), mode="circular"), (IMAGE,)),
}

NORMS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (5,), w, b),
        ("f32[3,5] f32[5] f32[5]", "f16[3,5] f16[5] f16[5]", "f32[2,3,5]:nan f32[5] f32[5]"),
    ),
    "layer_norm two axes": (lambda x: F.layer_norm(x, (3, 5), eps=1e-3), ("f32[4,3,5]", "f64[4,3,5]")),
    "layer_norm far from zero": (lambda x: F.layer_norm(x + 100, (50,)), ("f32[3,50]",)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w), ("f32[3,5] f32[5]", "f16[3,5] f16[5]")),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        (f"{IMAGE} f32[4] f32[4]", "f16[2,4,9,10] f16[4] f16[4]"),
    ),
    "group_norm alone": (lambda x: F.group_norm(x, 4, eps=1e-3), (IMAGE, SEQUENCE)),
    "instance_norm": (lambda x: F.instance_norm(x), (IMAGE, SEQUENCE)),
    "batch_norm": (
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
        (f"{IMAGE} f32[4] f32[4]:pos f32[4] f32[4]", "f32[3,4] f32[4] f32[4]:pos f32[4] f32[4]"),
    ),
    "batch_norm of the batch": (lambda x: F.batch_norm(x, None, None, training=True), (IMAGE,)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), (IMAGE,)),
}

PAIR = "f32[4,5] f32[4,5]"
LOSSES: dict[str, tuple[Function, tuple[str, ...]]] = {
    "mse_loss": (F.mse_loss, (PAIR, "f16[4,500] f16[4,500]")),
    "l1_loss": (F.l1_loss, (PAIR,)),
    "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), (PAIR,)),
    "huber_loss": (lambda x, y: F.huber_loss(x, y, delta=0.5), (PAIR,)),
    "cross_entropy": (F.cross_entropy, ("f32[4,5] i64[4]:idx5", "f32[2,5,3] i64[2,3]:idx5")),
    "cross_entropy smoothed": (
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
        ("f32[4,5] i64[4]:idx5",),
    ),
    "cross_entropy ignoring": (lambda x, y: F.cross_entropy(x, y, ignore_index=1), ("f32[4,5] i64[4]:idx5",)),
    "cross_entropy of shares": (lambda x, y: F.cross_entropy(x, y.softmax(1)), (PAIR,)),
    "nll_loss": (lambda x, y: F.nll_loss(x, y, reduction="none"), ("f32[4,5] i64[4]:idx5",)),
    "binary_cross_entropy": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), (PAIR,)),
    "bce with logits": (F.binary_cross_entropy_with_logits, (PAIR,)),
    "kl_div": (lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), (PAIR,)),
    "poisson_nll_loss": (F.poisson_nll_loss, (PAIR,)),
    "gaussian_nll_loss": (F.gaussian_nll_loss, ("f32[4,5] f32[4,5] f32[4,5]:pos",)),
    "hinge_embedding_loss": (lambda x, y: F.hinge_embedding_loss(x, y.sign()), (PAIR,)),
    "margin_ranking_loss": (lambda x, y: F.margin_ranking_loss(x, y, x.sign()), (PAIR,)),
    "soft_margin_loss": (lambda x, y: F.soft_margin_loss(x, y.sign()), (PAIR,)),
    "triplet_margin_loss": (lambda x, y: F.triplet_margin_loss(x, y, y + 1), (PAIR,)),
    "cosine_embedding_loss": (lambda x, y: F.cosine_embedding_loss(x, y, y[:, 0].sign()), (PAIR,)),
    "multilabel_soft_margin_loss": (lambda x, y: F.multilabel_soft_margin_loss(x, (y > 0).float()), (PAIR,)),
}

_lstm, _gru, _rnn = nn.LSTM(4, 3, batch_first=True), nn.GRU(4, 3), nn.RNN(4, 3, bidirectional=True)
_encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
_heads = nn.MultiheadAttention(8, 2, batch_first=True).eval()
LAYERS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "attention": (
        F.scaled_dot_product_attention,
        ("f32[2,3,6,8] f32[2,3,5,8] f32[2,3,5,4]", "f16[2,3,6,8] f16[2,3,5,8] f16[2,3,5,4]"),
    ),
    "attention causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ("f32[2,3,6,8] f32[2,3,6,8] f32[2,3,6,4]",),
    ),
    "attention mask": (F.scaled_dot_product_attention, ("f32[2,3,6,8] f32[2,3,5,8] f32[2,3,5,4] bool[6,5]",)),
    "lstm": (lambda x: nn.functional.relu(_lstm(x)[0]), ("f32[2,5,4]",)),
    "gru": (lambda x: _gru(x)[0], ("f32[5,2,4]",)),
    "rnn": (lambda x: _rnn(x)[0], ("f32[5,2,4]",)),
    "multi_head_attention": (lambda x: _heads(x, x, x)[0], ("f32[2,5,8]",)),
    "encoder layer": (_encoder, ("f32[2,5,8]",)),
    "dropout": (lambda x: F.dropout(x, 0.5, training=False), ("f32[5]",)),
    "glu": (F.glu, ("f32[3,6]",)),
    "gumbel-free softmax2d": (lambda x: F.softmax(x, -3), (IMAGE,)),
}


def table() -> Iterator[Call]:
    """Every function with each of its inputs."""
    families = (PRODUCTS, CONVOLUTIONS, POOLS, RESIZES, NORMS, LOSSES, LAYERS)
    for family, sums in (*((f, True) for f in families), (MAX_POOLS, False), (PADDING, False)):
        for name, (function, inputs) in family.items():
            for text in inputs:
                yield Call(f"{name} ({text})", function, text, sums=sums)
