# SPDX-License-Identifier: Apache-2.0
"""Models that leave sizes open are read once for all sizes that meet the conditions of that reading."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm import api
from uir_tvm.errors import SizeError
from uir_tvm.kernel_graph import assemble
from uir_tvm.runtime import symbolic_programs
from uir_tvm.runtime.symbolic_programs import SymbolicPrograms

from ..kernel_graph.programs import run_graph

WIDTH, HEADS, WORDS, PLACES = 16, 2, 31, 48
#: Relative to the largest result: fp32 sums in another order through a few layers.
TOLERANCE = 2e-5


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.all, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.causal = causal

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, length, _ = x.shape
        parts = self.all(self.before(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind(0)
        found = nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal)
        x = x + self.out(found.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.wide(self.after(x))


class Bert(nn.Module):
    """Words and places, a block under a mask, the mean of what the mask keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.block = Block(causal=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        x = self.block(x, (1.0 - mask[:, None, None, :].float()) * -1e9)
        kept = mask.unsqueeze(-1).float()
        return (x * kept).sum(1) / kept.sum(1)


class Gpt(nn.Module):
    """Words and places, a causal block, scores of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.block, self.scores = Block(causal=True), nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        return self.scores(self.block(self.words(ids) + self.places(torch.arange(ids.shape[1]))))


class Lstm(nn.Module):
    """The last step of a recurrence."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.out = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.steps(x)[0][:, -1])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )


n, length = Dim("n", max=512), Dim("length", max=PLACES)


def mask(*shape: int) -> Tensor:
    """Some words, and the first of every row."""
    return (torch.rand(*shape) < 0.8).long().index_fill(1, torch.tensor(0), 1)


def ids(*shape: int) -> Tensor:
    return torch.randint(WORDS, shape)


#: name -> model, inputs for sizes, which axes are open, their symbols.
MODELS: dict[str, tuple[Any, Any, Any, tuple[str, ...]]] = {
    "mlp": (mlp, lambda n: (torch.randn(n, 8),), ({0: n},), ("n",)),
    "cnn": (cnn, lambda n: (torch.randn(n, 3, 10, 10),), ({0: n},), ("n",)),
    "lstm": (Lstm, lambda n: (torch.randn(n, 5, 8),), ({0: n},), ("n",)),
    "gpt": (Gpt, lambda length: (ids(1, length),), ({1: length},), ("length",)),
    "bert": (
        Bert,
        lambda n, length: (ids(n, length), mask(n, length)),
        ({0: n, 1: length}, {0: n, 1: length}),
        ("n", "length"),
    ),
}


def exported(name: str) -> tuple[nn.Module, torch.export.ExportedProgram, Any, tuple[str, ...]]:
    torch.manual_seed(0)
    make, inputs, shapes, symbols = MODELS[name]
    module = make().eval().requires_grad_(False)
    example = inputs(*(4, 9)[: len(symbols)])
    return module, torch.export.export(module, example, dynamic_shapes=shapes), inputs, symbols


def opened(name: str) -> Any:
    """The model that a front end hands on."""
    _, program, _, _ = exported(name)
    with pytest.raises(uir_tvm.errors.DynamicShapeError) as caught:
        uir_tvm.frontend.from_torch(program)
    return caught.value.model


def programs() -> SymbolicPrograms:
    target = tvm.target.Target("uir-cpu")
    return SymbolicPrograms(lambda module, space: uir_tvm.kernel_graph.group(module, target, space))


def expect_close(got: Any, want: Tensor) -> None:
    scale = max(1.0, float(want.abs().max()) if want.numel() else 1.0)
    np.testing.assert_allclose(np.asarray(got), want.numpy(), rtol=0, atol=TOLERANCE * scale)


#: Shapes of each model.
SHAPES = 10 if os.environ.get("UIR_TEST_ALL") else 3


@pytest.mark.parametrize("name", MODELS if os.environ.get("UIR_TEST_ALL") else ("mlp", "gpt"))
def test_one_reading_serves_many_shapes(name: str) -> None:
    """The graphs of all shapes (ten, and of all models, with ``UIR_TEST_ALL=1``) come of one program."""
    module, program, inputs, symbols = exported(name)
    model, made, target = opened(name), programs(), tvm.target.Target("uir-cpu")
    rng = np.random.default_rng(1)
    for _ in range(SHAPES):
        sizes = dict(zip(symbols, map(int, rng.choice(np.arange(2, 40), len(symbols), False)), strict=True))
        args = inputs(*sizes.values())
        shapes = {each.name: tuple(arg.shape) for each, arg in zip(model.signature.inputs, args, strict=True)}
        found = made.of(model, shapes)
        assert found is not None, made.why_not
        graph = assemble(found.grouped(), target)
        assert [tensor.shape for tensor in graph.inputs] == list(shapes.values()), sizes
        (result,) = run_graph(graph, [arg.numpy() for arg in args])
        expect_close(result, module(*args))
    assert len(made.programs) == 1 and made.programs[0].uses == SHAPES and not made.why_not


def test_an_executable_says_what_it_was_made_of() -> None:
    module, program, inputs, _ = exported("mlp")
    exe = uir_tvm.compile(program)
    for size in (1, 5, 7, 0, 5):
        args = inputs(size)
        got = exe(*args)
        assert got.shape == (size, 4)
        expect_close(got, module(*args))
    report = exe.report()
    (made,) = report["programs"]
    assert made["conditions"][0] == "1 <= n <= 512" and made["shapes"] == 3
    assert report["imported_by_shape"] == "" and report["compiled"] == 4 - (made["shapes"] - 1) * (
        "kernels_by_sizes" in made
    )


class Even(nn.Module):
    """PyTorch traces it under a condition, and it asserts another."""

    def forward(self, x: Tensor) -> Tensor:
        torch._check(x.shape[0] % 4 == 0)
        return torch.relu(x.reshape(-1, 4, 2)).sum(1)


def test_conditions_of_the_model_are_checked_for_every_shape() -> None:
    m = Dim("m", max=64)
    program = torch.export.export(Even(), (torch.randn(8, 2),), dynamic_shapes=({0: 4 * m},))
    exe = uir_tvm.compile(program)
    expect_close(exe(torch.ones(12, 2)), Even()(torch.ones(12, 2)))
    with pytest.raises(SizeError):
        exe(torch.ones(10, 2))


class Windows(nn.Module):
    """Rows and columns in windows of 4 and 3, which PyTorch's export guards."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        batch, height, width, channels = x.shape
        windows = x.reshape(batch, height // 4, 4, width // 3, 3, channels)
        return self.out(windows.mean((2, 4))).relu()


def test_sizes_that_a_number_divides_are_read_as_its_multiples() -> None:
    torch.manual_seed(0)
    module = Windows().eval().requires_grad_(False)
    axes = ({0: Dim.AUTO, 1: Dim.AUTO, 2: Dim.AUTO},)
    exe: Any = uir_tvm.compile(module, args=(torch.randn(2, 12, 15, 8),), dynamic_shapes=axes)
    for shape in ((2, 8, 9), (5, 16, 6), (3, 40, 21), (2, 12, 30)):
        x = torch.randn(*shape, 8)
        expect_close(exe(x), module(x))
    report = exe.report()
    (made,) = report["programs"]
    assert {"Mod(x_1, 4) == 0", "Mod(x_2, 3) == 0"} <= set(made["conditions"])
    assert report["compiled"] == 1 and made["kernels_by_sizes"] == [] and report["imported_by_shape"] == ""
    with pytest.raises(SizeError):
        exe(torch.randn(2, 10, 9, 8))


class Numbered(nn.Module):
    """A size becomes a result: nothing that a program in symbols returns."""

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return torch.relu(x), x.shape[0]


def test_a_model_that_is_only_read_for_numbers_says_why() -> None:
    program = torch.export.export(Numbered(), (torch.randn(4, 2),), dynamic_shapes=({0: n},))
    exe = uir_tvm.compile(program)
    for size in (3, 5):
        got, number = exe(torch.ones(size, 2))
        assert number == size and got.shape == (size, 2)
    report = exe.report()
    assert report["programs"] == [] and "is no tensor" in report["imported_by_shape"]


def test_sizes_that_one_program_excludes_get_another(monkeypatch: pytest.MonkeyPatch) -> None:
    model, made = opened("bert"), programs()
    first = {"ids": (4, 9), "mask": (4, 9)}
    same = {"ids": (7, 7), "mask": (7, 7)}
    assert made.of(model, first) is not None
    made.programs[0].admits = lambda n, length: n != length
    assert made.of(model, same) is not None and len(made.programs) == 2
    assert made.programs[1].admits(n=7, length=7)
    monkeypatch.setattr(symbolic_programs, "MOST", 2)
    for program in made.programs:
        program.admits = lambda n, length: False
    assert made.of(model, first) is None and len(made.programs) == 2


def test_conditions_that_are_asked_while_all_is_compiled_hold_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What representatives decide then is right for them, and for sizes that meet it: not for others."""
    module, program, inputs, _ = exported("mlp")
    whole = api._compile_whole

    def asking(made: Any, *given: Any) -> Any:
        bool(made.space.symbol("n") > 40)  # as of primes that stand for all
        return whole(made, *given)

    monkeypatch.setattr(api, "_compile_whole", asking)
    exe = uir_tvm.compile(program)
    for size in (50, 7, 60):
        args = inputs(size)
        expect_close(exe(*args), module(*args))
    first, *others = exe.report()["programs"]
    assert "n >= 41" in first["conditions"] and first["shapes"] == 2 and len(others) == 1


def test_a_size_that_a_later_condition_excludes_is_compiled_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module, program, inputs, _ = exported("mlp")
    whole = api._compile_whole

    def asking(made: Any, *given: Any) -> Any:
        bool(made.space.symbol("n") > 40)
        return whole(made, *given)

    monkeypatch.setattr(api, "_compile_whole", asking)
    exe = uir_tvm.compile(program)
    args = inputs(7)
    made = exe.specialized(*args)
    assert made is not None
    expect_close(exe(*args), module(*args))
    assert not any(type(each.executable).__name__ == "SizedExecutable" for each in exe._whole.values())


class Places(torch.nn.Module):
    """Rows of a table by their places, of which a buffer is cut to the length before anything else."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", torch.arange(32)[None])
        self.table = torch.nn.Embedding(32, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        places = self.places[:, : x.shape[1]]
        return self.table(places) + x, x[:, -1]


def test_a_constant_is_cut_to_a_size_before_an_input_is_read() -> None:
    """The size is said in the input's variable, which nothing has met by then."""
    model, length = Places().eval(), torch.export.Dim("length", min=2, max=32)
    exe = uir_tvm.compile(model, args=(torch.randn(2, 5, 8),), dynamic_shapes={"x": {1: length}})
    for size in (3, 32, 7):
        x = torch.randn(2, size, 8)
        for got, want in zip(exe(x), model(x), strict=True):
            torch.testing.assert_close(got, want, atol=1e-6, rtol=1e-6)
    assert exe.report()["imported_by_shape"] == "" and exe.report()["compiled"] == 1
