# SPDX-License-Identifier: Apache-2.0
"""What an ONNX model consists of, as a digest."""

from __future__ import annotations

import pathlib

import onnx
from google.protobuf.message import EncodeError

from ...content_digest import ContentDigest

#: The word by which a tensor says in which other file its numbers are.
ELSEWHERE = b"location"


def digest_onnx(model: str | pathlib.Path | onnx.ModelProto, into: ContentDigest) -> bool:
    """Add a model to a digest; False where its numbers may be in other files, or it cannot be read."""
    try:
        content = (
            model.SerializeToString(deterministic=True)
            if isinstance(model, onnx.ModelProto)
            else pathlib.Path(model).read_bytes()
        )
    except (OSError, EncodeError, ValueError):  # there is no such file, or it is too large for its format
        return False
    if ELSEWHERE in content:
        return False
    into.text(f"onnx {onnx.__version__}")
    into.data(content)
    return True
