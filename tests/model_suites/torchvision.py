# SPDX-License-Identifier: Apache-2.0
"""Architectures of torchvision.models with random weights: the smallest of every family, on small images."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs

from .case import Built, ModelCase


@attrs.frozen
class Row:
    """How an architecture is called.

    Parameters
    ----------
    size : tuple of int
        Shape of the input, float32.
    count : int
        How many such inputs there are, side by side; 0: a list of one image, as detectors take it.
    options : dict
        Further arguments of the model's builder.
    measure : bool
        Whether batch normalisations take mean and variance from the inputs, as after a training.
    """

    size: tuple[int, ...] = (1, 3, 64, 64)
    count: int = 1
    options: dict[str, Any] = attrs.field(factory=dict)
    measure: bool = False


_CLIP = Row((1, 3, 8, 64, 64))
_NO_AUXILIARY = {"aux_logits": False, "init_weights": False}
_BARE = {"weights_backbone": None}
_DETECTOR = Row((3, 64, 64), 0, _BARE)

#: Family -> architecture -> its row.
FAMILIES: dict[str, dict[str, Row]] = {
    "classification": {
        **dict.fromkeys(
            "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s mnasnet0_5 mobilenet_v2 "
            "mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 "
            "resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11 vgg11_bn "
            "wide_resnet50_2".split(),
            Row(),
        ),
        # without their own initialisation, or figures of the batch, nothing but the last bias is left of so
        # many layers
        "googlenet": Row((2, 3, 64, 64), options=_NO_AUXILIARY | {"init_weights": True}, measure=True),
        "inception_v3": Row((1, 3, 96, 96), options=_NO_AUXILIARY | {"init_weights": True}),
        "maxvit_t": Row((1, 3, 224, 224)),
        "vit_b_32": Row(options={"image_size": 64}),
    },
    "segmentation": dict.fromkeys(
        "deeplabv3_mobilenet_v3_large deeplabv3_resnet50 fcn_resnet50 lraspp_mobilenet_v3_large".split(),
        Row(options=_BARE),
    ),
    "detection": dict.fromkeys(
        "fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_resnet50_fpn fcos_resnet50_fpn "
        "keypointrcnn_resnet50_fpn maskrcnn_resnet50_fpn retinanet_resnet50_fpn ssd300_vgg16 "
        "ssdlite320_mobilenet_v3_large".split(),
        _DETECTOR,
    ),
    "video": {
        **dict.fromkeys("mc3_18 r2plus1d_18 r3d_18 swin3d_t".split(), _CLIP),
        "mvit_v1_b": Row((1, 3, 16, 224, 224)),
        "mvit_v2_s": Row((1, 3, 16, 224, 224)),
        "s3d": Row((1, 3, 16, 224, 224), measure=True),
    },
    "optical flow": dict.fromkeys(("raft_large", "raft_small"), Row((1, 3, 128, 128), 2)),
    "quantised": {
        **dict.fromkeys(
            "quantized_mobilenet_v2 quantized_mobilenet_v3_large quantized_resnet18 quantized_resnet50 "
            "quantized_shufflenet_v2_x0_5".split(),
            Row(options={"quantize": True}),
        ),
        "quantized_googlenet": Row(options={"quantize": True, **_NO_AUXILIARY}),
        "quantized_inception_v3": Row((1, 3, 96, 96), options={"quantize": True, **_NO_AUXILIARY}),
    },
}


def cases() -> dict[str, ModelCase]:
    """Every architecture by its name in `torchvision.models`."""
    return {
        name: ModelCase("torchvision", name, family, partial(build, name, row))
        for family, rows in FAMILIES.items()
        for name, row in rows.items()
    }


def build(name: str, row: Row) -> Built:
    """A model with its inputs by place."""
    import torch
    import torchvision

    module = torchvision.models.get_model(name, weights=None, **row.options).eval()
    inputs = tuple(torch.rand(row.size) for _ in range(max(row.count, 1)))
    if row.measure:
        for part in module.modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
                part.momentum = 0.9  # the rest keeps variances of few elements from nothing
        with torch.no_grad():
            module.train()(*inputs)
        module.eval()
    return module, inputs if row.count else ([inputs[0]],), {}
