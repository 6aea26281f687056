# SPDX-License-Identifier: Apache-2.0
"""Language models from files: GGUF, folders of transformers, and folders of `LanguageModel.save`."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import attrs
import tvm

from ..api import compile as compile_model
from ..errors import ArtifactError, GenerationError, MissingPackageError, ModelFormatError, first_line
from ..frontend.torch_affine import DEQUANTIZE
from ..library.library_tables import NONE
from ..options import ACTIVATIONS, DEFAULT_TARGET, CompileOptions
from ..runtime import load as load_executable
from ..target.registry import resolve
from .batched_model import BatchedModel
from .compiled_model import CODE, FORMAT, SAMPLING, SETTINGS, ModelBytes
from .language_model import LanguageModel
from .read_model import packed_model, read_model
from .token_chooser import TokenChooser, TokenPrograms

#: What weights become (`load`).
FORMS = ("packed", "float32", "float16", "bfloat16", "q8", "q4")
#: What keys and values are kept in (`load`), and what they are where weights are of few bits.
CACHES, PACKED_CACHE = ("float32", "float16", "bfloat16"), "float16"
#: Operators whose results are packed weights.
UNPACKING = frozenset({"uir.dequantize.default", *DEQUANTIZE})
#: Other names of them.
ALIASES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
#: Tokens that one call takes at most, where nothing else is said.
CHUNK = 256


def load(
    model: Any,
    target: str | tvm.target.Target = DEFAULT_TARGET,
    *,
    max_length: int = 512,
    chunk: int | None = None,
    tokenizer: Any = None,
    weights: str | None = None,
    batch: int = 1,
    activation: str | None = None,
    cache: str | None = None,
    sampling: str = SAMPLING[0],
    options: CompileOptions | None = None,
) -> Any:
    """A language model, compiled for a target.

    Parameters
    ----------
    model : path, or transformers.PreTrainedModel
        A ``.gguf`` file, a folder of transformers (``config.json``), or one that `LanguageModel.save` wrote,
        whose target, length, weights and options are those of then.
    target : str or Target
    max_length : int
        Tokens of prompt and answers together.
    chunk : int, optional
        Tokens that one call takes at most: longer prompts take several. Default: 256, or ``max_length``.
    tokenizer : transformers.PreTrainedTokenizerBase, optional
        Of a model that is no file.
    weights : str, optional
        How weights of products and embeddings are kept; they compute in float32. ``packed``: as a GGUF file,
        or a folder of GPTQ or AWQ, packs them, to the bit. ``float32``. ``q8``, ``q4``: packed anew, 8 or 4
        bits a value and a scale (and an offset) for every 32. ``float16`` (``fp16``), ``bfloat16``
        (``bf16``): the whole model is of this type, activations and state too; products are summed in
        float32, and logits are float32. Default: ``packed`` for files of GGUF and folders of GPTQ and AWQ
        that are read here, else float32.
    batch : int
        Prompts that one call takes; each has a state of ``max_length`` tokens.
    activation : str, optional
        What products with packed weights read: ``exact``, or ``int8``: activations rounded to 8 bits a value
        (`CompileOptions.activation`, which it replaces).
    cache : str, optional
        The type in which keys and values are kept and attention reads them: ``float32``, ``float16``
        (``fp16``) or ``bfloat16`` (``bf16``); on uir-cpu it computes in float32 all the same. Default:
        float16 where weights are packed, else the model's own type.
    sampling : str
        Where tokens are chosen: ``device``, by programs compiled for the target when they are first needed,
        to which logits stay where they are; or ``host``, by NumPy.
    options : CompileOptions, optional

    Returns
    -------
    LanguageModel, or BatchedModel where ``batch`` is more than 1

    Raises
    ------
    MissingPackageError
        transformers, or gguf for a GGUF file, is not installed.
    ModelFormatError
        A file that is missing, cut off, of another format, or of a quantization or an architecture that is
        not known; tensors that do not fit its settings.
    GenerationError
        A length or a batch that is none, a form of weights or of the cache that is none, activations of int8
        where no weights are packed.
    TargetError
        The target does not round activations.
    TorchExportError, FrontendError
        The model cannot be exported or imported.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingPackageError(
            "Language models need transformers, which is not installed.",
            limit=str(error),
            remedy="pip install 'uir_tvm[llm]'",
        ) from error
    weights, cache = _form("weights", weights, FORMS), _form("cache", cache, CACHES)
    _form("sampling", sampling, SAMPLING)
    if isinstance(model, transformers.PreTrainedModel):
        model = packed_model(model, weights, copied=True)
    else:
        path = _path_of(model)
        if (path / SETTINGS).is_file():
            return _saved(path, transformers, sampling, weights=weights, activation=activation, cache=cache)
        model, tokenizer = read_model(path, weights)
    if tokenizer is None:
        raise GenerationError(
            "The model has no tokenizer.", need="a tokenizer of transformers", remedy="pass tokenizer=..."
        )
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    _check_length("max_length", max_length, most)
    chunk = min(CHUNK, max_length) if chunk is None else chunk
    _check_length("chunk", chunk, max_length)
    _check_length("batch", batch, None, least=1)

    from .exported import bytes_of, exported, program_vocabulary

    name = type(model).__name__
    counts = _counts_keys(target, options)
    program = exported(model.eval(), max_length, chunk, batch, _cache_type(model, cache), counts)
    options = _with_activation(options, activation, program)
    executable = compile_model(program, target, name=name, options=options)
    chooser, vocabulary = None, program_vocabulary(program)
    if sampling == "device":
        chooser = TokenChooser(TokenPrograms.compiled(batch, vocabulary, target, options))
    stop, nbytes = _stops(model, tokenizer), bytes_of(program)
    return _kind(batch)(executable, tokenizer, max_length, chunk, stop, nbytes, vocabulary, batch, chooser)


def _path_of(model: Any) -> pathlib.Path:
    try:
        return pathlib.Path(model)
    except TypeError as error:
        raise ModelFormatError(
            f"{type(model).__name__} is no language model.",
            need="a .gguf file, a folder, or a causal model of transformers (PreTrainedModel)",
            remedy="pass one of these",
        ) from error


def _form(name: str, value: str | None, forms: tuple[str, ...]) -> str | None:
    """One of some forms, by its first name."""
    found = ALIASES.get(str(value), value)
    if found is None or found in forms:
        return found
    others = [other for other, of in ALIASES.items() if of in forms]
    raise GenerationError(
        f"{name} is {value!r}.",
        need=f"one of {', '.join((*forms, *others))}",
        remedy="pass another, or leave it out",
    )


def _cache_type(model: Any, cache: str | None) -> Any:
    """The type of keys and values; None: the model's own."""
    import torch

    from .quantized_modules import is_packed

    if cache is None:
        cache = PACKED_CACHE if is_packed(model) else None
    return None if cache is None else getattr(torch, cache)


def _counts_keys(target: Any, options: CompileOptions | None) -> bool:
    """Whether calls say how many keys there are.

    Where the library attends it reads no key that the mask closes, and shapes stay the same from token to
    token; so they must where launches are captured. Elsewhere kernels would walk all there is room for.
    """
    library = resolve(target).spec.fact("library") or NONE
    return "attention" not in library.functions and not (options is not None and options.cuda_graph)


def _with_activation(
    options: CompileOptions | None, activation: str | None, program: Any
) -> CompileOptions | None:
    """The options, with the way to read activations that was asked for."""
    if activation is not None:
        options = attrs.evolve(options or CompileOptions(), activation=activation)
    rounds = options is not None and options.activation != ACTIVATIONS[0]
    if rounds and not any(str(node.target) in UNPACKING for node in program.graph.nodes):
        raise GenerationError(
            f"The model has no packed weights, whose products alone read activations as "
            f"{options.activation if options else activation}.",
            need='weights="packed" of a file that has such, "q8" or "q4"',
            remedy="pass these weights, or leave out activation",
        )
    return options


def _kind(batch: int) -> type[LanguageModel] | type[BatchedModel]:
    return LanguageModel if batch == 1 else BatchedModel


def _check_length(name: str, value: Any, most: int | None, least: int = 2) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= (most or value):
        return
    raise GenerationError(
        f"{name} is {value!r}.",
        need=f"a whole number, at least {least}" + (f", at most {most}" if most else ""),
        remedy="pass another",
    )


def _stops(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end an answer, as the model and its tokenizer say."""
    found: list[int] = []
    for given in (model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id):
        found += given if isinstance(given, list) else [] if given is None else [given]
    return list(dict.fromkeys(int(token) for token in found))


def _saved(
    path: pathlib.Path, transformers: Any, sampling: str, **asked: str | None
) -> LanguageModel | BatchedModel:
    """What `LanguageModel.save` wrote."""
    for name, value in asked.items():
        if value is not None:
            raise GenerationError(
                f"{path} is compiled: its {name} is what it was then.",
                limit=f"{name} is {value!r}",
                remedy="load the model's own file with it, and save it again",
            )
    settings = _settings(path / SETTINGS)
    if sampling == settings.pop("sampling") == "device":
        programs = TokenPrograms.saved(settings["batch"], settings["vocabulary"], path)
        settings["chooser"] = TokenChooser(programs)
    executable = load_executable(path / CODE)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path))
    except Exception as error:  # whatever transformers raises of a file
        raise ArtifactError(
            f"The tokenizer in {path} cannot be read: {first_line(error)}", remedy="save the model again"
        ) from error
    return _kind(settings["batch"])(executable, tokenizer, **settings)


def _settings(path: pathlib.Path) -> dict[str, Any]:
    """What a saved model is made with, beside its code and its tokenizer."""
    try:
        told = json.loads(path.read_text())
        kind = told["format"]
        if kind == FORMAT:
            numbers = {name: int(told[name]) for name in ("max_length", "chunk", "batch", "vocabulary")}
            if min(numbers.values()) < 1:
                raise ValueError(f"a number of {numbers} is below 1")
            return {
                **numbers,
                "stop": [int(token) for token in told["stop"]],
                "sampling": str(told["sampling"]),
                "nbytes": ModelBytes(**told["nbytes"]),
            }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(
            f"{path} cannot be read: {first_line(error)}",
            need="a folder that LanguageModel.save wrote",
            remedy="save the model again",
        ) from error
    raise ArtifactError(
        f"{path.parent} is of format {kind}.", need=f"format {FORMAT}", remedy="save the model again"
    )
