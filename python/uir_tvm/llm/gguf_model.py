# SPDX-License-Identifier: Apache-2.0
"""A model of transformers with the weights of a GGUF file, which stay packed where that is asked.

transformers says what the model is, and ``gguf`` what its tensors are called in files. The model is made
without memory for its weights; each comes from the mapped file as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..errors import MissingPackageError, ModelFormatError
from ..quantized_weight import QuantizedWeight
from .empty_model import model_without_weights, owners, tie
from .gguf_file import GgufFile, GgufTensor
from .half_weights import HALVES, narrowed
from .quantized_modules import GROUP, KINDS, packed_weight, replace_module

#: Architectures whose tensors are those of transformers, at most with rows in another order.
ARCHITECTURES = ("llama", "qwen2", "qwen3", "phi3", "starcoder2")
#: Tensors whose rows files keep in pairs: architecture -> name -> setting of the number of heads.
ROTATED = {"llama": {"attn_q": "attention.head_count", "attn_k": "attention.head_count_kv"}}
#: Tensors that transformers computes of the settings.
COMPUTED = ("rope_freqs.weight",)


def gguf_model(file: GgufFile, config: Any, weights: str) -> Any:
    """The model of a file.

    Parameters
    ----------
    file : GgufFile
        Of one of `ARCHITECTURES`.
    config : transformers.PreTrainedConfig
    weights : str
        As of `uir_tvm.llm.load`.

    Returns
    -------
    transformers.PreTrainedModel
        In eval mode; Linear and Embedding modules with packed weights are `QuantizedLinear` and
        `QuantizedEmbedding`.

    Raises
    ------
    MissingPackageError
        ``gguf`` or ``accelerate`` is not installed.
    ModelFormatError
        The tensors are not those of the model that the settings tell of.
    """
    model = model_without_weights(config)
    names = _names(model, file)
    _check_tensors(file, model, names)
    for name, module, attribute in list(owners(model)):
        tensor = file.tensors.get(names[name])
        if tensor is not None:
            _place(model, name, module, attribute, tensor, weights, _order(file, tensor))
    if config.tie_word_embeddings:
        tie(model)
    return model.eval()


def _names(model: Any, file: GgufFile) -> dict[str, str]:
    """Each parameter's name in files."""
    try:
        from gguf import MODEL_ARCH_NAMES, get_tensor_name_map
    except ImportError as error:
        raise MissingPackageError(
            "GGUF files need gguf, which is not installed.",
            limit=str(error),
            remedy="pip install 'uir_tvm[llm]'",
        ) from error
    arch = next(key for key, name in MODEL_ARCH_NAMES.items() if name == file.architecture)
    table = get_tensor_name_map(arch, model.config.num_hidden_layers)
    found = {}
    for name, _, attribute in owners(model):
        base = table.get_name(name.removesuffix("." + attribute))
        found[name] = f"{base}.{attribute}" if base else ""
    return found


def _order(file: GgufFile, tensor: GgufTensor) -> np.ndarray | None:
    """The file's row for each row of transformers; None: the same.

    llama.cpp rotates neighbouring rows, transformers rows that are half a head apart.
    """
    settings = ROTATED.get(file.architecture, {})
    key = next((key for part, key in settings.items() if f".{part}." in tensor.name), None)
    if key is None:
        return None
    heads: Any = file.settings.get(f"{file.architecture}.{key}")
    if heads is None:  # as many as of queries
        heads = file.settings[f"{file.architecture}.attention.head_count"]
    rows = tensor.shape[0]
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(-1)


def _check_tensors(file: GgufFile, model: Any, names: dict[str, str]) -> None:
    """The file has what the model has, of its shapes, and nothing else."""
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    missing = [names[name] or name for name in shapes if names[name] not in file.tensors]
    others = sorted({*file.tensors} - {*names.values()} - {*COMPUTED})
    if missing or others:
        raise ModelFormatError(
            f"{file.path} has not the tensors of a {type(model).__name__}.",
            where="; ".join(
                f"{what} {', '.join(found[:4])}{' and others' if len(found) > 4 else ''}"
                for what, found in (("without", missing), ("with", others))
                if found
            ),
            need=f"{len(shapes)} tensors, by the settings of the file",
            limit=f"it has {len(file.tensors)}",
            remedy="convert the model again; its settings and its tensors are of two models",
        )
    for name, shape in shapes.items():
        tensor = file.tensors[names[name]]
        if tensor.shape != shape:
            raise ModelFormatError(
                f"{file.path} has tensor {tensor.name!r} of shape {tensor.shape}.",
                need=f"{shape}, by the settings of the file",
                limit=f"{tensor.shape}",
                remedy="convert the model again; its settings and its tensors are of two models",
            )


def _place(
    model: Any,
    name: str,
    module: torch.nn.Module,
    attribute: str,
    tensor: GgufTensor,
    weights: str,
    order: np.ndarray | None,
) -> None:
    """Give a module a tensor of the file."""
    kind = KINDS.get(type(module)) if attribute == "weight" else None
    packed = None if kind is None else _packed(tensor, weights, order)
    if packed is None:
        values = tensor.values() if order is None else tensor.values()[order]
        made = torch.from_numpy(np.array(values))
        made = narrowed(made, weights) if weights in HALVES else made
        setattr(module, attribute, torch.nn.Parameter(made, requires_grad=False))
        return
    replacement: Any = kind.of(packed)  # type: ignore[union-attr]
    bias = getattr(module, "bias", None)
    if bias is not None:
        replacement.bias = bias  # filled in its turn
    replace_module(model, name.removesuffix("." + attribute), replacement)


def _packed(tensor: GgufTensor, weights: str, order: np.ndarray | None) -> QuantizedWeight | None:
    """A tensor of the file as a quantised one; None: it is float32."""
    if weights == "float32" or weights in HALVES or len(tensor.shape) != 2:
        return None
    if weights == "packed":
        return tensor.quantised(order) if tensor.kind.packing is not None else None
    if tensor.shape[1] % GROUP:
        return None
    values = tensor.values()
    return packed_weight(values if order is None else values[order], int(weights[1:]))
