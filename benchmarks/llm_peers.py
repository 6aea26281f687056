# SPDX-License-Identifier: Apache-2.0
"""Language models in several runtimes: each takes tokens at a place of its cache, and says what follows."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

#: Where compiled and converted models are kept for the next run; empty: nowhere.
KEPT = "UIR_LLM_KEPT"
#: Tokens of the prompts that are timed.
PROMPTS = (128, 512)


class Model(Protocol):
    """A model whose cache holds some tokens.

    Attributes
    ----------
    weight_bytes : int
        What one token reads of the weights.
    cache_bytes : int
        What it reads of the cache for each token there.
    """

    weight_bytes: int
    cache_bytes: int

    def run(self, tokens: Sequence[int], place: int) -> np.ndarray:
        """Compute tokens that stand at a place, whatever stood behind it; the logits of what follows."""


class Ours:
    """uir-cpu, with weights as they are packed or of a type, and activations as they are or in 8 bits."""

    def __init__(self, file: pathlib.Path, room: int, weights: str, activation: str | None = None) -> None:
        import uir_tvm.llm
        from uir_tvm.llm.gguf_file import GgufFile

        how = {"max_length": room, "chunk": 512, "weights": weights, "activation": activation}
        kept = _kept(f"{file.stem}-{room}-{weights}-{activation}")
        if kept is not None and (kept / "llm.json").is_file():
            self._model = uir_tvm.llm.load(kept)
        else:
            self._model = uir_tvm.llm.load(file, **how)
            if kept is not None:
                self._model.prefill([1, 2, 3])
                self._model.decode(4)
                self._model.save(kept)
        tensors = GgufFile(file).tensors.values()
        size = 2 if weights == "float16" else 4
        self.weight_bytes = sum(
            t.quantised().nbytes if weights == "packed" and t.kind.packing else size * int(np.prod(t.shape))
            for t in tensors
        )
        self.cache_bytes = cache_values(file) * (4 if weights == "float32" else 2)

    def run(self, tokens: Sequence[int], place: int) -> np.ndarray:
        """As of `Model`."""
        known = self._model.tokens[:place]
        assert len(known) == place
        return self._model.prefill([*known, *tokens]) if place else self._fresh(tokens)

    def _fresh(self, tokens: Sequence[int]) -> np.ndarray:
        self._model.tokens.clear()  # what it has is computed again
        return self._model.prefill(tokens)


def some(count: int) -> list[int]:
    """Tokens to be computed where it does not matter which."""
    return [5 + number % 1000 for number in range(count)]


def _kept(name: str) -> pathlib.Path | None:
    folder = os.environ.get(KEPT)
    return pathlib.Path(folder) / name if folder else None


def float16_file(file: pathlib.Path) -> pathlib.Path:
    """A GGUF file whose matrices are float16, beside others that are kept."""
    import gguf

    made = _kept(f"{file.stem}-float16.gguf")
    if made is None:
        raise ValueError("needs a folder for a file of float16: --kept")
    if made.is_file():
        return made
    reader = gguf.GGUFReader(file)
    fields = {field.name: field for field in reader.fields.values() if not field.name.startswith("GGUF.")}
    begun = made.with_suffix(".part")
    writer = gguf.GGUFWriter(begun, fields.pop("general.architecture").contents())
    for field in fields.values():
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        value = gguf.LlamaFileType.MOSTLY_F16 if field.name == "general.file_type" else field.contents()
        writer.add_key_value(field.name, value, kind, sub_type=inner)
    for tensor in reader.tensors:
        shape = [int(size) for size in tensor.shape][::-1]
        values = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        writer.add_tensor(tensor.name, values.astype(np.float16 if len(shape) > 1 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return begun.rename(made)


class LlamaCpp:
    """llama.cpp: the file as it is, activations in 8 bits, or all in fp16; the cache in fp16."""

    def __init__(self, file: pathlib.Path, room: int, half: bool = False) -> None:
        import llama_cpp

        file = float16_file(file) if half else file
        threads = int(os.environ["OMP_NUM_THREADS"])
        _without_tiles(llama_cpp)
        self._model = llama_cpp.Llama(
            str(file), n_ctx=room, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False
        )
        from uir_tvm.llm.gguf_file import GgufFile

        self.weight_bytes = sum(tensor.rows.nbytes for tensor in GgufFile(file).tensors.values())
        self.cache_bytes = cache_values(file) * 2
        self._vocabulary, self._logits = self._model.n_vocab(), llama_cpp.llama_get_logits

    def run(self, tokens: Sequence[int], place: int) -> np.ndarray:
        """As of `Model`."""
        self._model.n_tokens = place  # `eval` drops what its cache has behind it
        self._model.eval(tokens)
        found = self._logits(self._model.ctx)
        return np.ctypeslib.as_array(found, shape=(self._vocabulary,)).copy()


def _without_tiles(llama_cpp: Any) -> None:
    """Weights stay as they are in the file: 0.3.36 ends in a segmentation fault in its products on AMX."""
    made = llama_cpp.llama_model_default_params

    def parameters() -> Any:
        found = made()
        found.use_extra_bufts = False
        return found

    llama_cpp.llama_cpp.llama_model_default_params = llama_cpp.llama_model_default_params = parameters


class Torch:
    """transformers with a static cache, in fp32; eager, or by torch.compile.

    torch.compile has a program for a token and one for each of `PROMPTS`, all made before the model is ready;
    prompts of other lengths, which are not timed, stay eager, since each would take a program of its own.
    """

    def __init__(self, file: pathlib.Path, room: int, compiled: bool) -> None:
        code = _kept("inductor")
        if code is not None:
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(code))
        import torch
        from transformers.cache_utils import StaticCache

        model = transformers_model(file)
        self._torch, self._cache = torch, StaticCache(config=model.config, max_cache_len=room)
        self._cache.early_initialization(1, *_heads(file), torch.float32, torch.device("cpu"))
        self.weight_bytes = sum(4 * parameter.numel() for parameter in model.parameters())
        self.cache_bytes = cache_values(file) * 4
        self._eager = model.forward
        self._compiled: dict[int, Callable[..., Any]] = {}
        if compiled:
            call = torch.compile(model.forward, dynamic=False)
            self._compiled = dict.fromkeys((1, *PROMPTS), call)
        for count in self._compiled:
            self.run(some(count), 0)

    def run(self, tokens: Sequence[int], place: int) -> np.ndarray:
        """As of `Model`."""
        for layer in self._cache.layers:
            layer.cumulative_length.fill_(place)
        with self._torch.no_grad():
            found = self._compiled.get(len(tokens), self._eager)(
                input_ids=self._torch.tensor([list(tokens)]),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return found.logits[0, -1].numpy()


class OnnxRuntime:
    """ONNX Runtime: what `torch.onnx` makes of transformers' model in fp32; keys and values in and out."""

    def __init__(self, file: pathlib.Path, room: int) -> None:
        import onnxruntime

        model, heads = transformers_model(file), _heads(file)
        self.weight_bytes = sum(4 * parameter.numel() for parameter in model.parameters())
        self.cache_bytes = cache_values(file) * 4
        made = _kept(f"{file.stem}.onnx") or pathlib.Path(tempfile.mkdtemp()) / "model.onnx"
        if not made.is_file():
            export_onnx(model, made)
        layers = model.config.num_hidden_layers
        del model
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
        self._session = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
        self._value = onnxruntime.OrtValue.ortvalue_from_numpy
        self._names = past_names(layers)
        none = self._value(np.zeros((1, heads[0], 0, heads[1]), np.float32))
        #: Tokens -> their keys and values: of none, of the last call and before it.
        self._pasts = {0: [none] * 2 * layers}

    def run(self, tokens: Sequence[int], place: int) -> np.ndarray:
        """As of `Model`."""
        past, count = self._pasts[place], len(tokens)
        given = {
            "input_ids": np.array([tokens], np.int64),
            "position_ids": np.arange(place, place + count, dtype=np.int64)[None],
            "attention_mask": causal_mask(count, place),
        }
        values = {name: self._value(array) for name, array in given.items()}
        logits, *present = self._session.run_with_ort_values(
            None, values | dict(zip(self._names, past, strict=True))
        )
        self._pasts = {0: self._pasts[0], place: past, place + count: present}
        found: np.ndarray = logits.numpy()[0, -1]
        return found


def past_names(layers: int) -> list[str]:
    """Inputs of keys and values, as of `export_onnx`."""
    return [f"past_{kind}_{layer}" for layer in range(layers) for kind in ("key", "value")]


def causal_mask(count: int, place: int) -> np.ndarray:
    """What is added to scores: float32 (1, 1, tokens, tokens so far)."""
    closed = np.arange(place + count) > np.arange(place, place + count)[:, None]
    return np.where(closed, np.finfo(np.float32).min, 0).astype(np.float32)[None, None]


def export_onnx(model: Any, path: pathlib.Path) -> None:
    """Write a model of transformers whose keys and values are inputs and, with those of the call, outputs."""
    import torch
    from transformers import DynamicCache

    class Step(torch.nn.Module):
        def forward(self, input_ids: Any, position_ids: Any, attention_mask: Any, past: list[Any]) -> Any:
            pairs = [(past[at], past[at + 1]) for at in range(0, len(past), 2)]
            found = model(
                input_ids=input_ids,
                position_ids=position_ids,
                attention_mask=attention_mask,
                past_key_values=DynamicCache(pairs),
                use_cache=True,
                logits_to_keep=1,
            )
            kept = [each for layer in found.past_key_values.layers for each in (layer.keys, layer.values)]
            return found.logits, *kept

    config, count, place = model.config, 7, 5
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    shape = 1, config.num_key_value_heads, place, size
    past = [torch.zeros(shape) for _ in range(2 * config.num_hidden_layers)]
    tokens, before, whole = (torch.export.Dim(name) for name in ("tokens", "before", "whole"))
    names = past_names(config.num_hidden_layers)
    step = Step()
    step.model = model
    torch.onnx.export(
        step.eval(),
        (
            torch.zeros((1, count), dtype=torch.int64),
            torch.arange(place, place + count)[None],
            torch.from_numpy(causal_mask(count, place)),
            past,
        ),
        path,
        input_names=["input_ids", "position_ids", "attention_mask", *names],
        output_names=["logits", *(name.replace("past", "present") for name in names)],
        dynamic_shapes=({1: tokens}, {1: tokens}, {2: tokens, 3: whole}, [{2: before}] * len(past)),
        dynamo=True,
        external_data=True,
        verbose=False,
    )


def transformers_model(file: pathlib.Path) -> Any:
    """transformers' own model of a file, in fp32."""
    import torch
    import transformers

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return transformers.AutoModelForCausalLM.from_pretrained(
        str(file.parent), gguf_file=file.name, dtype=torch.float32
    ).eval()


def _heads(file: pathlib.Path) -> tuple[int, int]:
    """Heads of keys, and their size."""
    from uir_tvm.llm.gguf_file import GgufFile

    of = {key.partition(".")[2]: value for key, value in GgufFile(file).settings.items()}
    return of["attention.head_count_kv"], of["embedding_length"] // of["attention.head_count"]


def cache_values(file: pathlib.Path) -> int:
    """Keys and values of a token in all layers."""
    from uir_tvm.llm.gguf_file import GgufFile

    of = {key.partition(".")[2]: value for key, value in GgufFile(file).settings.items()}
    return int(2 * of["block_count"] * np.prod(_heads(file)))


#: Every runtime: file and room of the cache -> the model.
PEERS: dict[str, Callable[[pathlib.Path, int], Model]] = {
    "uir-cpu": lambda file, room: Ours(file, room, "packed"),
    "uir-cpu int8": lambda file, room: Ours(file, room, "packed", "int8"),
    "uir-cpu float16": lambda file, room: Ours(file, room, "float16"),
    "uir-cpu float32": lambda file, room: Ours(file, room, "float32"),
    "llama.cpp": LlamaCpp,
    "llama.cpp float16": lambda file, room: LlamaCpp(file, room, half=True),
    "ONNX Runtime": OnnxRuntime,
    "torch eager": lambda file, room: Torch(file, room, False),
    "torch.compile": lambda file, room: Torch(file, room, True),
}
