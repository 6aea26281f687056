# SPDX-License-Identifier: Apache-2.0
"""GGUF files are read as the package ``gguf`` reads them; what does not fit is refused by type."""

from __future__ import annotations

import pathlib
import struct

import numpy as np
import pytest
from uir_tvm.errors import ModelFormatError
from uir_tvm.llm.gguf_file import GgufFile

gguf = pytest.importorskip("gguf")

from .gguf_files import write  # noqa: E402


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write(tmp_path_factory.mktemp("gguf") / "small.gguf")


def test_as_the_package(written: pathlib.Path) -> None:
    found, reader = GgufFile(written), gguf.GGUFReader(written)
    assert found.architecture == "llama"
    assert {**found.settings} == {
        key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")
    }
    assert set(found.tensors) == {tensor.name for tensor in reader.tensors}
    for tensor in reader.tensors:
        wanted = gguf.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(found.tensors[tensor.name].values(), wanted)


def test_rows_in_another_order(written: pathlib.Path) -> None:
    tensor = GgufFile(written).tensors["token_embd.weight"]
    order = np.random.default_rng(1).permutation(tensor.shape[0])
    np.testing.assert_array_equal(tensor.quantised(order).values(), tensor.values()[order])


def test_cut_off_anywhere(written: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Every length that is too short is refused, with the bytes that are there."""
    data, path = written.read_bytes(), tmp_path / "cut.gguf"
    for length in [0, 3, *np.linspace(4, len(data) - 1, 60).astype(int)]:
        path.write_bytes(data[:length])
        with pytest.raises(ModelFormatError, match="damaged|no GGUF file") as caught:
            GgufFile(path)
        assert caught.value.need and caught.value.limit


def test_wrong_magic_and_version(written: pathlib.Path, tmp_path: pathlib.Path) -> None:
    data, path = written.read_bytes(), tmp_path / "other.gguf"
    path.write_bytes(b"ELF!" + data[4:])
    with pytest.raises(ModelFormatError, match="no GGUF file"):
        GgufFile(path)
    for version in (1, 9, 3 << 24):  # the last: another byte order
        path.write_bytes(data[:4] + struct.pack("<I", version) + data[8:])
        with pytest.raises(ModelFormatError, match=f"version {version}"):
            GgufFile(path)


def _changed(data: bytes, name: str, place: int, value: bytes) -> bytes:
    """The file with other bytes in the table's row of a tensor, from a place behind its name."""
    key = struct.pack("<Q", len(name)) + name.encode()
    begin = data.index(key) + len(key) + place
    return data[:begin] + value + data[begin + len(value) :]


@pytest.mark.parametrize(
    ("place", "value", "match"),
    [
        (0, struct.pack("<I", 9), "9 axes"),
        (4, struct.pack("<Q", 33), "rows of 33 values"),
        (12, struct.pack("<Q", 1 << 40), "cut off"),
        (20, struct.pack("<I", 99), "of type 99"),
        (20, struct.pack("<I", 4), "of type 4"),  # Q4_2, which is no more
        (24, struct.pack("<Q", 1 << 50), "cut off"),
        (24, struct.pack("<Q", 8), "begins at 8"),
        (24, struct.pack("<Q", 0), "share bytes"),
        (4, struct.pack("<QQ", 0, 1 << 63), "of shape .* 0"),
    ],
)
def test_a_table_that_does_not_fit(
    written: pathlib.Path, tmp_path: pathlib.Path, place: int, value: bytes, match: str
) -> None:
    path = tmp_path / "changed.gguf"
    path.write_bytes(_changed(written.read_bytes(), "blk.0.attn_q.weight", place, value))
    with pytest.raises(ModelFormatError, match=match) as caught:
        GgufFile(path)
    assert caught.value.need and caught.value.remedy


def test_counts_that_do_not_fit(written: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Refused before memory is asked for."""
    data, path = written.read_bytes(), tmp_path / "many.gguf"
    for place, what in ((8, "tensors"), (16, "settings")):
        path.write_bytes(data[:place] + struct.pack("<Q", 1 << 60) + data[place + 8 :])
        with pytest.raises(ModelFormatError, match=what):
            GgufFile(path)


def test_arrays_in_each_other(written: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Refused by type, before Python's own depth is reached."""
    data, path = written.read_bytes(), tmp_path / "deep.gguf"
    key = b"tokenizer.ggml.merges"
    begin = data.index(key) + len(key) + 4
    path.write_bytes(data[:begin] + struct.pack("<IQ", 9, 1) * 3000 + data[begin:])
    with pytest.raises(ModelFormatError, match="arrays in each other"):
        GgufFile(path)


def test_a_setting_twice(written: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "twice.gguf"
    old, new = b"llama.rope.dimension_count", b"llama.attention.head_count"
    path.write_bytes(written.read_bytes().replace(old, new))
    with pytest.raises(ModelFormatError, match="setting 'llama.attention.head_count' is there twice"):
        GgufFile(path)


def test_a_name_twice(written: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "twice.gguf"
    path.write_bytes(written.read_bytes().replace(b"blk.1.attn_q.weight", b"blk.0.attn_q.weight"))
    with pytest.raises(ModelFormatError, match="there twice"):
        GgufFile(path)
