# SPDX-License-Identifier: Apache-2.0
"""A model that was compiled before is found again whole; with other weights, however made, it never is."""

from __future__ import annotations

import gc
import pathlib
import threading
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import tvm
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from torch.export import Dim
from uir_tvm import CompileOptions, program_cache
from uir_tvm.content_digest import ContentDigest
from uir_tvm.frontend.torch_digest import digest_program
from uir_tvm.target import registry


@pytest.fixture(autouse=True)
def kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("UIR_KERNEL_CACHE", "memory")
    monkeypatch.setenv("UIR_EQUIVALENCE", "none")
    program_cache.forget()
    yield
    program_cache.forget()


class Scaled(torch.nn.Module):
    """A weight that the import folds (it is doubled), and one that the library packs."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.scale = torch.nn.Parameter(torch.randn(16))
        self.product = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.product(x) * (self.scale * 2.0))


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2.0


class Of(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


X = torch.linspace(-1, 1, 64).reshape(4, 16)


#: Passes that ran while `Passes` looked.
NAMES: list[str] = []


@tvm.ir.instrument.pass_instrument
class Passes:
    def run_before_pass(self, _mod: Any, info: Any) -> None:
        NAMES.append(str(info.name))


def compiled(module: torch.nn.Module, x: torch.Tensor = X, **options: Any) -> Any:
    return uir_tvm.compile(module, args=(x,), options=CompileOptions(**options))


def is_kept(exe: Any) -> bool:
    return "kept" in exe.info.seconds


def right(exe: Any, module: torch.nn.Module, x: torch.Tensor = X) -> None:
    with torch.no_grad():
        np.testing.assert_allclose(exe(x).numpy(), module(x).numpy(), rtol=2e-6, atol=2e-6)


def test_a_second_compilation_runs_no_pass() -> None:
    module, counts = Scaled(), []
    for _ in range(2):
        passes = Passes()
        with tvm.transform.PassContext(instruments=[passes]):
            exe = compiled(module)
            right(exe, module)
        counts.append(len(NAMES))
        NAMES.clear()
    assert counts[0] > 10 and counts[1] == 0
    assert is_kept(exe) and [each.kept for each in exe.info.kernels] == ["memory"] * len(exe.info.kernels)


def test_weights_count_by_their_contents() -> None:
    """Of another model of the same structure, and changed in place: seen by PyTorch, and behind its back."""
    one, other = Scaled(0), Scaled(1)
    first, second = compiled(one), compiled(other)
    before = first(X).numpy().copy()
    right(second, other)
    for change in (
        lambda: one.scale.add_(1.0),
        lambda: one.scale.data.mul_(3.0),
        lambda: np.negative(one.product.weight.detach().numpy(), out=one.product.weight.detach().numpy()),
    ):
        with torch.no_grad():
            change()
        made = compiled(one)
        assert not is_kept(made)
        right(made, one)
    np.testing.assert_array_equal(first(X).numpy(), before)
    assert is_kept(compiled(Scaled(0))) and is_kept(compiled(other))


def test_executables_of_one_program_have_state_of_their_own() -> None:
    module, x = Counts(), torch.arange(4.0)
    first, second = compiled(module, x), compiled(module, x)
    assert is_kept(second)
    first(x)
    np.testing.assert_array_equal(first(x).numpy(), 4 * x.numpy())
    np.testing.assert_array_equal(second(x).numpy(), 2 * x.numpy())


def key(target: str = "uir-cpu", label: str = "m", digest: bytes = b"model", **options: Any) -> bytes | None:
    resolved, made = registry.resolve(target), CompileOptions(**options)
    return program_cache.key_of(lambda: digest, label, resolved, resolved.spec.places[0].name, made)


def test_what_decides_what_is_compiled_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    keys = [
        key(),
        key("uir-cpu:avx512-2core"),
        key("uir-cuda"),
        key(label="other"),
        key(digest=b"other"),
        key(fuse=False),
        key(cuda_graph=True),
        key(specialize=({"n": 1},)),
    ]
    monkeypatch.setenv("UIR_NUM_THREADS", "1")
    keys.append(key())
    assert None not in keys and len(set(keys)) == len(keys) and key() == keys[-1]
    # what is dumped, compared or chosen by a database is made each time
    for options in ({"kernel_cache": "off"}, {"dump_dir": tmp_path}, {"equivalence": "full"}):
        assert key(**options) is None
    assert key(database=tmp_path) is None


def test_programs_that_nobody_holds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Of(lambda x: x + torch.linspace(0, 1, 16))
    monkeypatch.setenv("UIR_PROGRAM_CACHE_MB", "0")
    first = compiled(module)
    second = compiled(module)
    assert is_kept(second)
    del first  # the other holds the same program
    gc.collect()
    third = compiled(module)
    assert is_kept(third)
    del second, third
    gc.collect()
    assert not is_kept(compiled(module))
    monkeypatch.setenv("UIR_PROGRAM_CACHE_MB", "1")
    monkeypatch.setattr(program_cache, "MOST", 1)
    for each in (module, Of(lambda x: x + 2.0)):
        compiled(each)
        gc.collect()
    assert not is_kept(compiled(module)) and len(program_cache._LAST) == 1


def test_open_sizes_compile_once() -> None:
    def opened(module: torch.nn.Module) -> Any:
        return uir_tvm.compile(module, args=(X,), dynamic_shapes=({0: Dim("rows", max=64)},))

    module = Scaled()
    first = opened(module)
    with torch.no_grad():
        module.scale.add_(1.0)  # the model is imported at the call
    right(first, module)
    assert first.compiled == 1
    again = opened(Scaled())
    right(again, Scaled())
    assert again.compiled == 1, "what was made is of weights that the model had later"
    last = opened(Scaled())
    for rows in (4, 7, 1):
        right(last, Scaled(), X[:1].expand(rows, 16).contiguous())
    assert last.compiled == 0 and again.report()["programs"][0]["shapes"] == 1


def test_a_program_counts_where_the_model_is_still_the_same() -> None:
    """Further sizes may be another program, of weights that were changed meanwhile."""

    module = Scaled()
    exe = uir_tvm.compile(module, args=(X,), dynamic_shapes=({0: Dim("rows", max=64)},))
    right(exe, module)
    (program,) = exe._programs.programs
    with torch.no_grad():
        module.scale.mul_(2.0)
    exe._programs.programs.clear()  # as sizes that the first one does not admit
    exe._whole.clear(), exe._paths.actions.clear()
    right(exe, module)
    kept = [each for each in program_cache._LAST.values() if isinstance(each, program_cache.KeptSizes)]
    assert [each.executable for one in kept for each in one.programs.programs] == [program.executable]


def test_onnx_is_found_again(tmp_path: pathlib.Path) -> None:
    def model(factor: float) -> onnx.ModelProto:
        weight = numpy_helper.from_array(np.full((4,), factor, np.float32), "w")
        graph = helper.make_graph(
            [helper.make_node("Mul", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
            [weight],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    x = np.arange(4, dtype=np.float32)
    for factor in (2.0, 3.0, 2.0):
        exe = uir_tvm.compile(model(factor))
        np.testing.assert_array_equal(exe(x), factor * x)
    assert is_kept(exe)
    path = tmp_path / "m.onnx"
    for factor in (2.0, 3.0):
        onnx.save(model(factor), path)
        np.testing.assert_array_equal(uir_tvm.compile(path)(x), factor * x)


def digest(module: torch.nn.Module, x: torch.Tensor = X) -> bytes | None:
    made = ContentDigest()
    program = torch.export.export(module.eval(), (x,))
    return made.digest() if digest_program(program, made) else None


def test_programs_that_differ_have_other_digests() -> None:
    functions = [
        lambda x: x + 1,
        lambda x: x + 1.0,
        lambda x: x - 1,
        lambda x: (x + 1,),
        lambda x: {"y": x + 1},
        lambda x: {"z": x + 1},
        lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)),
        lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 2, (x,)),
        lambda x: x.permute(1, 0),
        lambda x: x + torch.ones(16),
        lambda x: x + torch.zeros(16),
    ]
    found = [digest(Of(function)) for function in functions]
    found += [digest(Of(functions[0]), X.double()), digest(Of(functions[0]), X[:2])]
    assert None not in found and len(set(found)) == len(found)
    assert digest(Of(functions[0])) == found[0]


def test_operators_of_users_are_not_told() -> None:
    """What they compute may be another thing by the next time."""
    library = torch.library.Library("uir_kept", "FRAGMENT")
    library.define("same(Tensor x) -> Tensor")
    library.impl("same", lambda x: x.clone(), "CompositeExplicitAutograd")
    assert digest(Of(lambda x: torch.ops.uir_kept.same(x))) is None


def test_threads_that_compile_one_model_get_the_same() -> None:
    module, made = Scaled(), []
    program = torch.export.export(module.eval(), (X,))
    threads = [threading.Thread(target=lambda: made.append(uir_tvm.compile(program))) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for exe in made:
        right(exe, module)
    assert len(made) == 3
