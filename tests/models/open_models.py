# SPDX-License-Identifier: Apache-2.0
"""Models with sizes left open, and how often each compiles: ``recompilations(name, route, shapes)``."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from . import MODELS
from .registry import Scale

#: How a model comes: as PyTorch's module, or as a file of its exporter to ONNX.
ROUTES = ("torch", "onnx")
#: Of the largest number of a result: fp32 sums in another order through a dozen layers.
TOLERANCE = 2e-5


class Convolutions(nn.Module):
    """A fully convolutional network: strides, padding, a pool."""

    def __init__(self, width: int) -> None:
        super().__init__()
        conv, norm, relu = nn.Conv2d, nn.BatchNorm2d, nn.ReLU
        self.layers = nn.Sequential(
            *(conv(3, width, 3, padding=1), norm(width), relu()),
            *(conv(width, 2 * width, 3, stride=2, padding=1), norm(2 * width), relu()),
            *(nn.MaxPool2d(2), conv(2 * width, 2 * width, 3, padding=1), relu()),
            conv(2 * width, 8, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """float32 (batch, 3, height, width) -> (batch, 8, about height / 4, about width / 4)."""
        return self.layers(x)


class Steps(nn.Module):
    """An LSTM, and a layer on its states."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.steps, self.head = nn.LSTM(width, width), nn.Linear(width, 8)

    def forward(self, x: Tensor) -> Tensor:
        """float32 (length, 2, width) -> (length, 2, 8)."""
        return self.head(self.steps(x)[0])


@attrs.frozen
class OpenModel:
    """A model, the ranges of its sizes at a scale, inputs for sizes, and which axes of inputs they are.

    ``script``: which exporter to ONNX takes it, that through TorchScript where torch.export fixes a size.
    """

    module: Callable[[Scale], nn.Module]
    sizes: Callable[[Scale], Mapping[str, tuple[int, int]]]
    inputs: Callable[..., tuple[Tensor, ...]]
    axes: tuple[Mapping[int, str], ...]
    script: bool = False


def _of(name: str) -> Callable[[Scale], nn.Module]:
    return lambda scale: MODELS[name].build(scale)[0]


def _pick(small: Any, full: Any) -> Callable[[Scale], Any]:
    return lambda scale: small if scale == "small" else full


WORDS, WIDTH, IMAGE = _pick(97, 20000), _pick(16, 256), _pick(32, 224)
LENGTH = {0: "batch", 1: "length"}

OPEN_MODELS: dict[str, OpenModel] = {
    "minilm": OpenModel(
        _of("minilm"),
        _pick({"batch": (1, 8), "length": (2, 16)}, {"batch": (1, 16), "length": (4, 256)}),
        lambda scale, n, s: (torch.randint(WORDS(scale), (n, s)), torch.ones(n, s, dtype=torch.long)),
        (LENGTH, LENGTH),
    ),
    "gpt2": OpenModel(
        _of("gpt2"),
        _pick({"length": (2, 16)}, {"length": (4, 512)}),
        lambda scale, s: (torch.randint(WORDS(scale), (1, s)),),
        ({1: "length"},),
    ),
    "vit": OpenModel(
        _of("vit"),
        _pick({"batch": (1, 16)}, {"batch": (1, 16)}),
        lambda scale, n: (torch.randn(n, 3, IMAGE(scale), IMAGE(scale)),),
        ({0: "batch"},),
    ),
    "convolutions": OpenModel(
        lambda scale: Convolutions(_pick(8, 32)(scale)),
        _pick(
            {"batch": (1, 8), "height": (8, 64), "width": (8, 64)},
            {"batch": (1, 8), "height": (16, 160), "width": (16, 160)},
        ),
        lambda scale, n, h, w: (torch.randn(n, 3, h, w),),
        ({0: "batch", 2: "height", 3: "width"},),
    ),
    "lstm": OpenModel(
        lambda scale: Steps(WIDTH(scale)),
        _pick({"length": (2, 40)}, {"length": (2, 256)}),
        lambda scale, s: (torch.randn(s, 2, WIDTH(scale)),),
        ({0: "length"},),
        script=True,
    ),
}


@attrs.frozen
class Recompiled:
    """What was compiled for the shapes of a model after its first call.

    Attributes
    ----------
    error : float
        The largest difference from PyTorch, relative to the largest number of a result.
    kernels : tuple of (str, int, str)
        Kernels that are compiled for the sizes of a call: name, for how many after the first, why.
    programs : int
        Executables beyond the first.
    by_shape : str
        Why the model is imported anew for each shape; empty where it is not.
    """

    error: float
    kernels: tuple[tuple[str, int, str], ...]
    programs: int
    by_shape: str

    @property
    def count(self) -> int:
        """Kernels and executables that were compiled after the first call."""
        return self.programs + sum(number for _, number, _ in self.kernels)


def example(name: str, scale: Scale) -> tuple[Tensor, ...]:
    """Inputs of sizes that nothing else in a model has."""
    case = OPEN_MODELS[name]
    ranges = enumerate(case.sizes(scale).values())
    return case.inputs(scale, *(min(high, max(low, 5) + 2 * place) for place, (low, high) in ranges))


def _dims(name: str, scale: Scale) -> tuple[dict[int, Any], ...]:
    case = OPEN_MODELS[name]
    dims = {name: Dim(name, min=low, max=high) for name, (low, high) in case.sizes(scale).items()}
    return tuple({axis: dims[name] for axis, name in each.items()} for each in case.axes)


def to_onnx(name: str, module: nn.Module, scale: Scale) -> onnx.ModelProto:
    """A model as PyTorch's exporter writes it."""
    case, given = OPEN_MODELS[name], example(name, scale)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not case.script:
            program = torch.onnx.export(
                module, given, dynamo=True, verbose=False, dynamic_shapes=_dims(name, scale)
            )
            assert program is not None
            return onnx.load_model_from_string(program.model_proto.SerializeToString())
        buffer, names = io.BytesIO(), [f"input{place}" for place in range(len(given))]
        axes = {each: dict(axes) for each, axes in zip(names, case.axes, strict=True)}
        torch.onnx.export(module, given, buffer, dynamo=False, input_names=names, dynamic_axes=axes)
        return onnx.load_model_from_string(buffer.getvalue())


def recompilations(name: str, route: str, shapes: int, scale: Scale = "small", seed: int = 0) -> Recompiled:
    """Compile a model once, call it with random shapes, and tell what else was compiled.

    Parameters
    ----------
    name : str
        Of `OPEN_MODELS`.
    route : str
        Of `ROUTES`.
    shapes : int
        Calls, each of random sizes in the ranges.
    """
    import uir_tvm

    case = OPEN_MODELS[name]
    torch.manual_seed(seed)
    with torch.no_grad():
        module = case.module(scale).eval().requires_grad_(False)
        exe: Any
        if route == "torch":
            exe = uir_tvm.compile(
                module, "uir-cpu", args=example(name, scale), dynamic_shapes=_dims(name, scale)
            )
        else:
            exe = uir_tvm.compile(to_onnx(name, module, scale), "uir-cpu")
        rng, error = np.random.default_rng(seed), 0.0
        for _ in range(shapes):
            sizes = (int(rng.integers(low, high + 1)) for low, high in case.sizes(scale).values())
            given = case.inputs(scale, *sizes)
            want, got = module(*given).numpy(), np.asarray(exe(*given))
            error = max(error, float(np.abs(got - want).max() / np.abs(want).max()))
    report = exe.report()
    rows = [row for each in report["programs"] for row in each.get("kernels_by_sizes", [])]
    kernels = tuple((row["kernel"], len(row["sizes"]) - 1, row["reason"]) for row in rows)
    return Recompiled(error, kernels, report["compiled"] - 1, report["imported_by_shape"])
