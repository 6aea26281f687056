# SPDX-License-Identifier: Apache-2.0
"""Folders of GPTQ and AWQ compute what their codes, scales and points mean; others are refused."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm.llm
from uir_tvm.errors import ModelFormatError

pytest.importorskip("accelerate")
pytest.importorskip("safetensors")
from safetensors.torch import load_file, save_file
from uir_tvm.llm.packed_layouts import PackedLayout, layout_of, weight_of
from uir_tvm.llm.quantized_modules import QuantizedLinear
from uir_tvm.llm.read_model import read_model

from .packed_folders import packed, write
from .small import WORDS


def _logits(model: Any) -> np.ndarray:
    with torch.no_grad():
        return model(torch.arange(9)[None] % WORDS).logits[0].numpy()


KINDS = [("awq", False, 4), *(("gptq", ordered, bits) for ordered in (False, True) for bits in (2, 3, 4, 8))]


@pytest.mark.parametrize(("method", "ordered", "bits"), KINDS)
def test_values(method: str, ordered: bool, bits: int) -> None:
    """Every code, scale and zero point is found at its place, in any order of the groups."""
    parts, expected = packed(np.random.default_rng(bits), (64, 96), method, bits, 32, ordered)
    weight, order = weight_of(parts, PackedLayout(method, bits, 32, method == "gptq"), (64, 96), "module")
    assert (order is not None) == ordered and weight.packing.bits == (8 if bits == 8 else 4)
    found = weight.values()
    np.testing.assert_allclose(
        found, expected if order is None else expected[:, order], atol=1e-5 * np.abs(expected).max()
    )


@pytest.mark.parametrize(("method", "ordered"), [("gptq", True), ("awq", False)])
def test_model(tmp_path: pathlib.Path, method: str, ordered: bool) -> None:
    """The same logits as with the float weights, packed or not; the tied embedding is one."""
    wanted = _logits(write(tmp_path, method, ordered=ordered))
    for weights, kind in (("packed", QuantizedLinear), ("float32", torch.nn.Linear)):
        made, _ = read_model(tmp_path, weights)
        assert type(made.model.layers[0].mlp.down_proj) is kind
        assert made.lm_head.weight is made.model.embed_tokens.weight
        np.testing.assert_allclose(_logits(made), wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_compiled(tmp_path: pathlib.Path) -> None:
    """Weights stay packed in what is compiled, columns in the order of their groups too."""
    wanted = write(tmp_path, ordered=True).model.layers[0].mlp
    made = read_model(tmp_path, None)[0].model.layers[0].mlp
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 32)).astype(np.float32))
    program = torch.export.export(made, (x,))
    exe = uir_tvm.compile(program, target="uir-cpu")
    with torch.no_grad():
        expected = wanted(x).numpy()
    np.testing.assert_allclose(exe(x).numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert exe.report()["library"] == 3
    held = sum(part.nbytes for part in [*made.buffers()])
    assert held < sum(part.nbytes for part in wanted.parameters())


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"quant_method": "gptq", "bits": 5}, "bits of 5"),
        ({"quant_method": "awq", "bits": 8}, "bits of 8"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "layout of 'gemv'"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "groups of 0"),
    ],
)
def test_settings_that_are_none(told: dict[str, Any], match: str) -> None:
    with pytest.raises(ModelFormatError, match=match):
        layout_of(told, "folder")


def test_parts_that_do_not_fit() -> None:
    parts, _ = packed(np.random.default_rng(0), (64, 96), "gptq", 4, 32, False)
    with pytest.raises(ModelFormatError, match=r"module.qzeros is int32\(3, 8\)"):
        weight_of(parts, PackedLayout("gptq", 4, 16, 1), (64, 96), "module")
    with pytest.raises(ModelFormatError, match="96 inputs, in groups of 40"):
        weight_of(parts, PackedLayout("gptq", 4, 40, 1), (64, 96), "module")
    with pytest.raises(ModelFormatError, match="module.qweight"):
        weight_of(parts, PackedLayout("gptq", 8, 32, 1), (64, 96), "module")
    parts["g_idx"] = np.zeros(96, np.int32)
    with pytest.raises(ModelFormatError, match="g_idx"):
        weight_of(parts, PackedLayout("gptq", 4, 32, 1), (64, 96), "module")


def test_folders_that_are_not_whole(tmp_path: pathlib.Path) -> None:
    """A tensor too many, one that is missing, a file that is cut off."""
    write(tmp_path)
    path = tmp_path / "model.safetensors"
    whole = load_file(path)
    save_file(whole | {"model.other.weight": torch.zeros(3)}, path)
    with pytest.raises(ModelFormatError, match="not the tensors"):
        read_model(tmp_path, None)
    save_file({name: part for name, part in whole.items() if not name.endswith("q_proj.qzeros")}, path)
    with pytest.raises(ModelFormatError, match=r"no tensor .*q_proj.qzeros"):
        read_model(tmp_path, None)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelFormatError, match="cannot be read"):
        read_model(tmp_path, None)
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"]["bits"] = 7
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFormatError, match="bits of 7"):
        read_model(tmp_path, None)
