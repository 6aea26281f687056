# SPDX-License-Identifier: Apache-2.0
"""Model and tokenizer of a file or folder."""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Callable
from typing import Any

from ..errors import GenerationError, MissingPackageError, ModelFormatError, UirError, first_line


def read_model(path: pathlib.Path, weights: str | None) -> tuple[Any, Any]:
    """The model and the tokenizer of a ``.gguf`` file, or of a folder of transformers.

    Parameters
    ----------
    path : pathlib.Path
    weights : str, optional
        As of `uir_tvm.llm.load`.

    Raises
    ------
    MissingPackageError, ModelFormatError, GenerationError
        As of `uir_tvm.llm.load`.
    """
    import torch
    import transformers

    given: dict[str, Any] = {}
    read: Callable[[], Any] | None = None
    folder = path
    if path.is_file():
        from .gguf_file import GgufFile
        from .gguf_model import ARCHITECTURES, gguf_model
        from .gguf_sizes import check_sizes

        file = GgufFile(path)
        check_sizes(file)
        folder, given = path.parent, {"gguf_file": path.name}
        if file.architecture in ARCHITECTURES:

            def read() -> Any:
                config = transformers.AutoConfig.from_pretrained(str(folder), **given)
                return gguf_model(file, config, weights or "packed")

        elif weights == "packed":
            raise ModelFormatError(
                f"{path} is of architecture {file.architecture!r}, whose weights cannot stay packed.",
                need=", ".join(ARCHITECTURES),
                remedy='load it with weights="float32" (--weights float32)',
            )
    elif not (path / "config.json").is_file():
        raise ModelFormatError(
            f"{path} is no language model.",
            need="a .gguf file, or a folder with config.json",
            remedy="check the path",
        )
    else:
        from .packed_folder import packed_folder, quantization_of

        told = quantization_of(path)
        if told is not None:

            def read() -> Any:
                config = transformers.AutoConfig.from_pretrained(str(folder))
                kept = weights in (None, "packed")
                found = packed_folder(folder, told, config, kept)
                return found if kept else packed_model(found, weights)

    try:
        if read is not None:
            model = read()
        else:
            model = transformers.AutoModelForCausalLM.from_pretrained(
                str(folder), dtype=torch.float32, **given
            )
            model = packed_model(model, weights)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **given)
    except UirError:
        raise
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


def packed_model(model: Any, weights: str | None, copied: bool = False) -> Any:
    """A model of transformers with its weights in another form: another type, or packed, where that is asked.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    weights : str, optional
        As of `uir_tvm.llm.load`; None and ``float32`` leave the model.
    copied : bool
        Whether the model that is given stays as it is.

    Raises
    ------
    GenerationError
        Asked to keep what is not packed.
    ModelFormatError
        For weights that cannot be packed, or that the type has not.
    """
    if weights in (None, "float32"):
        return model
    if weights == "packed":
        raise GenerationError(
            "The model's weights are not packed.",
            need="a .gguf file, or a folder that GPTQ or AWQ has quantised",
            remedy='pass weights="q8" or "q4"',
        )
    model = copy.deepcopy(model) if copied else model
    from .half_weights import HALVES, narrow
    from .quantized_modules import pack_modules

    if weights in HALVES:
        narrow(model, str(weights))
        return model
    pack_modules(model, int(str(weights)[1:]))
    return model
