# SPDX-License-Identifier: Apache-2.0
"""Language models from files: GGUF, folders of transformers, and folders of `LanguageModel.save`."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import tvm

from ..api import compile as compile_model
from ..errors import ArtifactError, GenerationError, MissingPackageError, ModelFormatError, first_line
from ..options import DEFAULT_TARGET, CompileOptions
from ..runtime import load as load_executable
from .language_model import CODE, FORMAT, SETTINGS, LanguageModel

#: The first bytes of a GGUF file.
MAGIC = b"GGUF"
#: Tokens that one call takes at most, where nothing else is said.
CHUNK = 256


def load(
    model: Any,
    target: str | tvm.target.Target = DEFAULT_TARGET,
    *,
    max_length: int = 512,
    chunk: int | None = None,
    tokenizer: Any = None,
    options: CompileOptions | None = None,
) -> LanguageModel:
    """A language model, compiled for a target.

    Parameters
    ----------
    model : path, or transformers.PreTrainedModel
        A ``.gguf`` file, a folder of transformers (``config.json``), or one that `LanguageModel.save` wrote,
        whose target, length and options are those of then. Weights compute in float32, whatever the
        file packs them in.
    target : str or Target
    max_length : int
        Tokens of prompt and answers together.
    chunk : int, optional
        Tokens that one call takes at most: longer prompts take several. Default: 256, or ``max_length``.
    tokenizer : transformers.PreTrainedTokenizerBase, optional
        Of a model that is no file.
    options : CompileOptions, optional

    Raises
    ------
    MissingPackageError
        transformers, or gguf for a GGUF file, is not installed.
    ModelFormatError
        A file that is missing, truncated, of another format, or of an architecture that transformers does
        not read.
    GenerationError
        A length that is none.
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
    if not isinstance(model, transformers.PreTrainedModel):
        path = pathlib.Path(model)
        if (path / SETTINGS).is_file():
            return _saved(path, transformers)
        model, tokenizer = _read(path, transformers)
    if tokenizer is None:
        raise GenerationError(
            "The model has no tokenizer.", need="a tokenizer of transformers", remedy="pass tokenizer=..."
        )
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    _check_length("max_length", max_length, most)
    chunk = min(CHUNK, max_length) if chunk is None else chunk
    _check_length("chunk", chunk, max_length)

    from .exported import exported

    name = type(model).__name__
    executable = compile_model(exported(model.eval(), max_length, chunk), target, name=name, options=options)
    return LanguageModel(executable, tokenizer, max_length, chunk, _stops(model, tokenizer))


def _check_length(name: str, value: Any, most: int | None) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= (most or value):
        return
    raise GenerationError(
        f"{name} is {value!r}.",
        need="a whole number, at least 2" + (f", at most {most}" if most else ""),
        remedy="pass another",
    )


def _read(path: pathlib.Path, transformers: Any) -> tuple[Any, Any]:
    """Model and tokenizer of a file or folder."""
    if path.is_file():
        folder, more = path.parent, {"gguf_file": path.name}
        _check_gguf(path)
    elif (path / "config.json").is_file():
        folder, more = path, {}
    else:
        raise ModelFormatError(
            f"{path} is no language model.",
            need="a .gguf file, or a folder with config.json",
            remedy="check the path",
        )
    import torch

    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32, **more)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **more)
    except ImportError as error:
        raise MissingPackageError(
            f"{path} cannot be read: {first_line(error)}", remedy="pip install 'uir_tvm[llm]'"
        ) from error
    except Exception as error:  # whatever transformers raises of a file
        raise ModelFormatError(
            f"transformers cannot read {path}: {first_line(error)}",
            need="weights and a tokenizer of a causal model that transformers knows",
            remedy="download the model again, or convert it to a folder of transformers",
        ) from error
    return model, tokenizer


def _check_gguf(path: pathlib.Path) -> None:
    """Refuse what is no GGUF file before a package reads it."""
    with path.open("rb") as file:
        begin = file.read(len(MAGIC))
    if begin != MAGIC:
        raise ModelFormatError(
            f"{path} is no GGUF file.",
            need=f"a file that begins with {MAGIC.decode()}",
            limit=f"it begins with {begin!r}",
            remedy="check the path, or download the model again",
        )


def _stops(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end an answer, as the model and its tokenizer say."""
    found: list[int] = []
    for given in (model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id):
        found += given if isinstance(given, list) else [] if given is None else [given]
    return list(dict.fromkeys(int(token) for token in found))


def _saved(path: pathlib.Path, transformers: Any) -> LanguageModel:
    """What `LanguageModel.save` wrote."""
    try:
        settings = json.loads((path / SETTINGS).read_text())
        told = settings["format"], settings["max_length"], settings["chunk"], settings["stop"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ArtifactError(
            f"{path / SETTINGS} cannot be read: {first_line(error)}",
            need="a folder that LanguageModel.save wrote",
            remedy="save the model again",
        ) from error
    kind, max_length, chunk, stop = told
    if kind != FORMAT:
        raise ArtifactError(
            f"{path} is of format {kind}.", need=f"format {FORMAT}", remedy="save the model again"
        )
    executable = load_executable(path / CODE)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path))
    except Exception as error:  # whatever transformers raises of a file
        raise ArtifactError(
            f"The tokenizer in {path} cannot be read: {first_line(error)}", remedy="save the model again"
        ) from error
    return LanguageModel(executable, tokenizer, int(max_length), int(chunk), [int(token) for token in stop])
