# SPDX-License-Identifier: Apache-2.0
"""Settings that cannot be those of a file's tensors are refused before a model is made of them."""

from __future__ import annotations

import pathlib
import struct
from typing import Any

import numpy as np
import pytest
from uir_tvm.errors import ModelFormatError
from uir_tvm.llm.gguf_file import GgufFile
from uir_tvm.llm.gguf_sizes import check_sizes

pytest.importorskip("gguf")
pytest.importorskip("accelerate")

from uir_tvm.llm.read_model import read_model

from tests.asked import asked

from .gguf_files import write


def test_a_file_that_fits(tmp_path: pathlib.Path) -> None:
    check_sizes(GgufFile(write(tmp_path / "small.gguf")))


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"block_count": 2**31 - 1}, "block_count is 2147483647"),
        ({"embedding_length": 2**31 - 64}, "embedding_length is 2147483584"),
        ({"rope_dimension_count": 2**31}, "rope.dimension_count is 2147483648"),
        ({"rope_freq_base": float("nan")}, "rope.freq_base is nan"),
        ({"rope_freq_base": -1e4}, "rope.freq_base is -10000.0"),
        ({"layer_norm_rms_eps": float("inf")}, "layer_norm_rms_epsilon is inf"),
    ],
)
def test_sizes_that_no_tensor_has(tmp_path: pathlib.Path, more: dict[str, Any], match: str) -> None:
    """A model of these would take hours or all memory; rates of angles would be no numbers."""
    path = write(tmp_path / "small.gguf", more=more)
    with pytest.raises(ModelFormatError, match=match) as caught:
        read_model(path, None)
    assert caught.value.need and caught.value.limit and caught.value.remedy


#: Files with changed bytes: in the campaign each is made a model.
COUNT = 200


def test_bytes_of_the_header_at_random(tmp_path: pathlib.Path) -> None:
    """What is read of a damaged header is a model, or a typed error; never another error, and at once."""
    seed = 20261128
    rng, path = np.random.default_rng(seed), tmp_path / "damaged.gguf"
    data = write(tmp_path / "small.gguf").read_bytes()
    end = len(data) - sum(tensor.rows.nbytes for tensor in GgufFile(tmp_path / "small.gguf").tensors.values())
    refused = 0
    for case in range(COUNT):
        changed = bytearray(data)
        for place in rng.integers(0, end, int(rng.integers(1, 4))):
            changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            check_sizes(GgufFile(path))
            if case < asked(4, COUNT):
                read_model(path, None)
        except ModelFormatError as error:
            assert error.need, f"seed {seed}, case {case}"
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, case {case}: {type(error).__name__}: {error}") from error
    assert refused > COUNT // 10


@pytest.mark.parametrize("letter", ["<I", "<Q"])
def test_numbers_that_were_cut(tmp_path: pathlib.Path, letter: str) -> None:
    """Each number of the table of tensors becomes its greatest."""
    data, path = write(tmp_path / "small.gguf").read_bytes(), tmp_path / "damaged.gguf"
    begin = data.index(b"token_embd.weight") + len(b"token_embd.weight")
    most = struct.pack(letter, 2 ** (8 * struct.calcsize(letter)) - 1)
    for place in range(begin, begin + 24, len(most)):
        path.write_bytes(data[:place] + most + data[place + len(most) :])
        with pytest.raises(ModelFormatError):
            GgufFile(path)
