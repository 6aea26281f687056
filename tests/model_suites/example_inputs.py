# SPDX-License-Identifier: Apache-2.0
"""Example inputs of transformers' models by what they read, sized by their configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .tiny_config import ORDINARY

TOKENS = 8
#: Frames of sound, and samples of a wave.
FRAMES, SAMPLES = 64, 4000

Inputs = dict[str, Any]


def found(config: Any, *names: str, default: Any = None) -> Any:
    """The first field that a configuration, or its part for images or sound, has."""
    parts = [config, *(getattr(config, part, None) for part in ("vision_config", "audio_config"))]
    for part in parts:
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value
    return default


def tokens(count: int = TOKENS) -> torch.Tensor:
    """A row of ordinary tokens, int64[1, count]."""
    return torch.randint(5, ORDINARY, (1, count))


def text(config: Any) -> Inputs:
    """Tokens, all of them attended to."""
    return {"input_ids": tokens(), "attention_mask": torch.ones(1, TOKENS, dtype=torch.int64)}


def text_only(config: Any) -> Inputs:
    """Tokens without a mask."""
    return {"input_ids": tokens()}


def text_to_text(config: Any) -> Inputs:
    """Tokens of the source and of the target."""
    return {**text(config), "decoder_input_ids": tokens(5)}


def image(config: Any) -> Inputs:
    """One image, float32[1, channels, height, width]."""
    size = found(config, "image_size", default=64)
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return {"pixel_values": torch.randn(1, found(config, "num_channels", default=3), height, width)}


def image_and_text(config: Any) -> Inputs:
    """One image and a text."""
    return {**text(config), **image(config)}


def video(config: Any) -> Inputs:
    """One film, float32[1, frames, channels, height, width]."""
    frames = found(config, "num_frames", "frames_per_clip", default=4)
    return {"pixel_values": image(config)["pixel_values"].unsqueeze(1).repeat(1, frames, 1, 1, 1)}


def wave(config: Any) -> Inputs:
    """Samples of sound, float32[1, samples]."""
    return {"input_values": torch.randn(1, SAMPLES)}


def wave_channel(config: Any) -> Inputs:
    """Samples of sound with a channel, float32[1, 1, samples]."""
    return {"input_values": torch.randn(1, 1, SAMPLES)}


def frames(config: Any) -> Inputs:
    """A spectrogram by frames, float32[1, frames, bins]."""
    bins = found(config, "feature_projection_input_dim", "input_feat_per_channel", "num_mel_bins", default=16)
    return {"input_features": torch.randn(1, FRAMES, bins)}


def patched_frames(config: Any) -> Inputs:
    """A spectrogram of the length that the model was made for, float32[1, frames, bins]."""
    return {"input_values": torch.randn(1, config.max_length, config.num_mel_bins)}


def speech_to_text(config: Any) -> Inputs:
    """A spectrogram by bins of the model's length, float32[1, bins, frames], and tokens of the target."""
    length = 2 * config.max_source_positions
    features = torch.randn(1, config.num_mel_bins, length)
    return {"input_features": features, "decoder_input_ids": tokens(5)}


def frames_to_text(config: Any) -> Inputs:
    """A spectrogram by frames, and tokens of the target."""
    return {**frames(config), "decoder_input_ids": tokens(5)}


def wave_to_text(config: Any) -> Inputs:
    """Samples of sound, and tokens of the target."""
    return {**wave(config), "decoder_input_ids": tokens(5)}


READERS: dict[str, Callable[[Any], Inputs]] = {
    each.__name__: each
    for each in (
        text, text_only, text_to_text, image, image_and_text, video, wave, wave_channel, frames,
        patched_frames, speech_to_text, frames_to_text, wave_to_text,
    )
}  # fmt: skip
