# SPDX-License-Identifier: Apache-2.0
"""Folders of transformers whose weights GPTQ or AWQ has quantised: the model, its weights packed as they are.

Their tensors are read from safetensors files; no package of the method is needed.
"""

from __future__ import annotations

import copy
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers.pytorch_utils import Conv1D

from ..errors import MissingPackageError, ModelFormatError, first_line
from .empty_model import model_without_weights, owners, tie
from .packed_layouts import PackedLayout, layout_of, weight_of
from .quantized_modules import QuantizedLinear, replace_module

#: Methods of ``quantization_config`` that are read here.
METHODS = ("gptq", "awq")
#: What the files of a folder list their tensors in, where there are several.
INDEX = "model.safetensors.index.json"


def quantization_of(folder: pathlib.Path) -> dict[str, Any] | None:
    """What ``config.json`` says of packed weights that are read here."""
    try:
        told = json.loads((folder / "config.json").read_text()).get("quantization_config")
    except (OSError, ValueError):  # transformers says what is wrong with it
        return None
    known = isinstance(told, dict) and str(told.get("quant_method", "")).lower() in METHODS
    return told if known else None


def packed_folder(folder: pathlib.Path, told: Mapping[str, Any], config: Any, packed: bool) -> Any:
    """The model of a folder.

    Parameters
    ----------
    folder : pathlib.Path
    told : mapping
        Of `quantization_of`.
    config : transformers.PreTrainedConfig
    packed : bool
        Whether weights stay packed; else they become float32.

    Returns
    -------
    transformers.PreTrainedModel
        In eval mode; what the file has packed is `QuantizedLinear`.

    Raises
    ------
    MissingPackageError
        ``safetensors`` or ``accelerate`` is not installed.
    ModelFormatError
        A layout that is not known, tensors that are not those of the model.
    """
    layout = layout_of(told, str(folder))
    config = copy.deepcopy(config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    tensors = _Tensors(folder)
    model = model_without_weights(config)
    for name, module in list(model.named_modules()):
        if f"{name}.qweight" in tensors.names:
            replace_module(model, name, _packed_module(tensors, name, module, layout, packed))
    tied, last = config.tie_word_embeddings, model.get_output_embeddings()
    for name, module, attribute in list(owners(model)):
        if getattr(module, attribute).is_meta and not (tied and module is last):
            setattr(module, attribute, torch.nn.Parameter(tensors.floats(name), requires_grad=False))
    if tied:
        tie(model)
        (again,) = (name for name, module in model.named_modules() if module is model.get_output_embeddings())
        tensors.read.add(f"{again}.weight")  # some writers repeat it
    others = [name for name in sorted(tensors.names - tensors.read) if not name.endswith("inv_freq")]
    if others:
        raise ModelFormatError(
            f"{folder} has not the tensors of a {type(model).__name__}.",
            where=f"with {', '.join(others[:4])}{' and others' if len(others) > 4 else ''}",
            need="those that config.json tells of",
            remedy="download the model again",
        )
    return model.eval()


def _packed_module(
    tensors: _Tensors, name: str, module: torch.nn.Module, layout: PackedLayout, packed: bool
) -> torch.nn.Module:
    """A module with the packed weight of the files."""
    if not isinstance(module, torch.nn.Linear | Conv1D):
        raise ModelFormatError(
            f"{name} is a {type(module).__name__}, which has no packed weight.",
            need="a Linear module",
            remedy="quantise the model again, without this module",
        )
    rows, columns = tuple(module.weight.shape)
    shape = (columns, rows) if isinstance(module, Conv1D) else (rows, columns)
    names = [part for part in layout.parts if part != "g_idx" or f"{name}.g_idx" in tensors.names]
    parts = {part: tensors.array(f"{name}.{part}") for part in names}
    weight, order = weight_of(parts, layout, shape, name)
    made: Any
    if packed:
        made = QuantizedLinear.of(weight)
        if order is not None:
            made.order = torch.from_numpy(order)
    else:
        made = torch.nn.Linear(shape[1], shape[0], bias=False, device="meta")
        values = weight.values()
        if order is not None:
            values[:, order] = values.copy()
        made.weight = torch.nn.Parameter(torch.from_numpy(values), requires_grad=False)
    if f"{name}.bias" in tensors.names:
        bias = tensors.floats(f"{name}.bias")
        if module.bias is not None or bool(bias.any()):  # some writers add a bias of zeros
            made.bias = torch.nn.Parameter(bias, requires_grad=False)
    elif module.bias is not None:
        tensors.floats(f"{name}.bias")
    return made


class _Tensors:
    """The tensors of a folder's safetensors files, each read when it is asked for."""

    def __init__(self, folder: pathlib.Path) -> None:
        try:
            from safetensors import safe_open
        except ImportError as error:
            raise MissingPackageError(
                "Packed weights of folders need safetensors, which is not installed.",
                limit=str(error),
                remedy="pip install 'uir_tvm[llm]'",
            ) from error
        self.folder, self.read = folder, set[str]()
        self.files: dict[str, Any] = {}
        for path in self._paths():
            try:
                file = safe_open(str(path), framework="pt")
                self.files |= dict.fromkeys(file.keys(), file)
            except Exception as error:  # whatever safetensors raises of a file
                raise ModelFormatError(
                    f"{path} cannot be read: {first_line(error)}", remedy="download the model again"
                ) from error
        self.names = set(self.files)

    def _paths(self) -> list[pathlib.Path]:
        found = sorted(self.folder.glob("*.safetensors"))
        if (self.folder / INDEX).is_file():
            listed = json.loads((self.folder / INDEX).read_text())["weight_map"].values()
            found = [self.folder / name for name in sorted(set(listed))]
        if not found:
            raise ModelFormatError(
                f"{self.folder} has no safetensors files.",
                need="the packed weights in such files",
                remedy="download the model again, or save it with safe_serialization=True",
            )
        return found

    def tensor(self, name: str) -> Tensor:
        """A tensor as the file has it."""
        if name not in self.files:
            raise ModelFormatError(
                f"{self.folder} has no tensor {name!r}.",
                need="the tensors of the model that config.json tells of",
                remedy="download the model again",
            )
        self.read.add(name)
        found: Tensor = self.files[name].get_tensor(name)
        return found

    def floats(self, name: str) -> Tensor:
        """A tensor in float32."""
        return self.tensor(name).float()

    def array(self, name: str) -> Any:
        """A tensor as an array; bfloat16 as float32."""
        found = self.tensor(name)
        return (found.float() if found.dtype is torch.bfloat16 else found).numpy()
