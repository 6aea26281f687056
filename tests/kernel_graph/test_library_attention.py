# SPDX-License-Identifier: Apache-2.0
"""Attention over keys that are state, and of many rows where its CPU has tiles, is the library's."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from uir_tvm.library.library_tables import LibraryTable, library_of
from uir_tvm.options import CompileOptions


class Cached(torch.nn.Module):
    """Four heads of queries on two of keys; `form` is what happens between the products."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.register_buffer("keys", torch.zeros(1, 2, 40, 16))
        self.register_buffer("values", torch.zeros(1, 2, 40, 16))

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(2, places, x[:, :2])
        self.values.index_copy_(2, places, x[:, 2:4])
        keys, values = (
            state.repeat_interleave(2, 1) if self.form != "elsewhere" else state.repeat_interleave(2, 1) + 1
            for state in (self.keys, self.values)
        )
        scores = x[:, 4:] @ keys.transpose(-1, -2)
        if self.form == "capped":
            scores = torch.tanh(scores / 5) * 5
        closed = torch.arange(40)[None] > places[:, None]
        scores = scores * 0.25 + torch.where(closed, -torch.inf, 0.0)
        if self.form == "scaled mask":
            scores = scores * 2
        return (scores.softmax(-1) @ values).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("form", "library"), [("plain", 1), ("capped", 0), ("scaled mask", 0), ("elsewhere", 0)]
)
def test_results_and_who_computes_them(form: str, library: int) -> None:
    rng = np.random.default_rng(3)
    length = torch.export.Dim("length", max=12)
    args = (torch.zeros(1, 8, 5, 16), torch.arange(5))
    program = torch.export.export(Cached(form), args, dynamic_shapes=({2: length}, {0: length}), strict=True)
    exe = uir_tvm.compile(program, options=CompileOptions(variants="named"))
    reference, place = Cached(form), 0
    for count in (7, 1, 12, 1):
        x = torch.from_numpy(rng.standard_normal((1, 8, count, 16)).astype(np.float32))
        places = torch.arange(place, place + count)
        place += count
        with torch.no_grad():
            want = reference(x, places)
        got: Any = exe(x, places)
        np.testing.assert_allclose(np.asarray(got), want.numpy(), rtol=1e-4, atol=1e-5)
    report = exe.specialized(x, places).report()
    assert report["library"] == library
    assert report["heroes"].get("attention", 0) == 1 - library


class Plain(torch.nn.Module):
    """Attention with a causal mask, and with numbers added."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        causal = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) / 3 + mask
        return (causal + scores.softmax(-1) @ v).transpose(1, 2)


@pytest.mark.parametrize(("rows", "library"), [(40, 2), (39, 0)])
def test_many_rows_where_tiles_pay(rows: int, library: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the table says decides, not this CPU; results are those of torch."""
    target = tvm.target.Target("uir-cpu")
    table = library_of([str(key) for key in target.keys])
    least = tuple(attrs.evolve(tiled, min_rows=40, min_keys=40) for tiled in table.tiled_attention)
    assert least
    table = attrs.evolve(table, tiled_attention=least)
    monkeypatch.setattr(LibraryTable, "on", lambda *_: table)
    args = (*(torch.randn(2, 3, rows, 16) for _ in range(3)), torch.randn(2, 1, 1, rows))
    exe = uir_tvm.compile(torch.export.export(Plain(), args), target=target)
    np.testing.assert_allclose(np.asarray(exe(*args)), Plain()(*args).numpy(), rtol=1e-5, atol=1e-5)
    report = exe.report()
    assert report["library"] == library and report["heroes"].get("attention", 0) == 2 - library


def test_open_rows_where_tiles_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """One program whose number of queries and keys is open, at sizes that fill no tile, and with few rows."""
    target = tvm.target.Target("uir-cpu")
    table = library_of([str(key) for key in target.keys])
    least = tuple(attrs.evolve(tiled, min_rows=1, min_keys=1) for tiled in table.tiled_attention)
    monkeypatch.setattr(LibraryTable, "on", lambda *_: attrs.evolve(table, tiled_attention=least))
    length = torch.export.Dim("length", min=2, max=300)
    args = (*(torch.randn(2, 3, 90, 16) for _ in range(3)), torch.randn(2, 1, 1, 90))
    shapes = ({2: length}, {2: length}, {2: length}, {3: length})
    program = torch.export.export(Plain(), args, dynamic_shapes=shapes)
    exe = uir_tvm.compile(program, target=target, options=CompileOptions(variants="named"))
    for rows in (90, 33, 259, 3):
        given = (*(torch.randn(2, 3, rows, 16) for _ in range(3)), torch.randn(2, 1, 1, rows))
        np.testing.assert_allclose(np.asarray(exe(*given)), Plain()(*given).numpy(), rtol=1e-5, atol=1e-5)
    assert exe.specialized(*given).report()["library"] == 2


@pytest.mark.parametrize(
    ("mcpu", "features"),
    [
        ("sapphirerapids", ["amx-bf16"]),
        ("znver4", ["avx512f"]),
        ("icelake-server", []),
        ("x86-64-v3", ["avx2"]),
        ("x86-64-v2", []),
    ],
)
def test_processors_that_have_tiles(mcpu: str, features: list[str]) -> None:
    """Tiles of AMX, or of vectors: of AVX-512 where it was measured, of AVX2 where there is no AVX-512."""
    table = library_of([str(key) for key in tvm.target.Target("uir-cpu").keys])
    target = tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "keys": ["uir", "cpu"]})
    assert [tiled.feature for tiled in table.on(target).tiled_attention] == features
