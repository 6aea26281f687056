# SPDX-License-Identifier: Apache-2.0
"""What a request of OpenAI's interface asks of a language model.

It may say ``top_k`` and ``repetition_penalty`` beside OpenAI's fields. All that is wrong with it is a
`GenerationError`, whose ``where`` names the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import GenerationError

#: Field of a request -> argument of `LanguageModel.generate`, and the types that it may have.
FIELDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "max_tokens": ("max_new_tokens", (int,)),
    "max_completion_tokens": ("max_new_tokens", (int,)),
    "temperature": ("temperature", (int, float)),
    "top_p": ("top_p", (int, float)),
    "top_k": ("top_k", (int,)),
    "repetition_penalty": ("repetition_penalty", (int, float)),
    "seed": ("seed", (int,)),
    "stop": ("stop", (str, list)),
}
#: Fields whose only value is that which changes nothing.
UNCHANGED: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logprobs": (False,),
    "logit_bias": ({},),
    "echo": (False,),
    "tools": ([],),
}
#: Where a request says nothing: OpenAI's temperature.
DEFAULTS: Mapping[str, Any] = {"temperature": 1.0}


def read_request(body: bytes) -> dict[str, Any]:
    """The object of a body.

    Raises
    ------
    GenerationError
        It is none.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise GenerationError(
            f"The body is no JSON: {error}", need="an object", remedy="correct it"
        ) from error
    return dict(_typed("the body", found, (dict,)))


def streams(asked: dict[str, Any]) -> bool:
    """Whether the answer comes in events."""
    return bool(_typed("stream", asked.get("stream") or False, (bool,)))


def arguments_of(asked: dict[str, Any], defaults: Mapping[str, Any] = DEFAULTS) -> dict[str, Any]:
    """What `LanguageModel.generate` is told beside the prompt.

    Parameters
    ----------
    asked : dict of str to object
        The request.
    defaults : mapping of str to object
        Arguments of which it says nothing.

    Raises
    ------
    GenerationError
        A field of another type, or one that asks for what there is not.
    """
    for field, allowed in UNCHANGED.items():
        if asked.get(field) is not None and asked[field] not in allowed:
            raise GenerationError(
                f"{field} is {asked[field]!r}.", where=field, need=f"{allowed[0]!r}", remedy="leave it out"
            )
    given = dict(defaults)
    for field, (argument, types) in FIELDS.items():
        value = asked.get(field)
        if value is not None:
            given[argument] = _typed(field, value, types)
    return given


def prompt_of(asked: dict[str, Any], chat: bool, system: str = "") -> str | list[dict[str, str]]:
    """The text, or of a chat the messages; parts of a message's content are put together.

    Parameters
    ----------
    asked : dict of str to object
    chat : bool
    system : str
        What the model is told first, where the messages begin with another role.

    Raises
    ------
    GenerationError
        There is none.
    """
    if not chat:
        return str(_typed("prompt", asked.get("prompt"), (str,)))
    found = []
    for message in _typed("messages", asked.get("messages"), (list,)):
        content = _typed("messages", message, (dict,)).get("content")
        if isinstance(content, list):
            parts = [_typed("content", part, (dict,)).get("text") for part in content]
            content = "".join(_typed("content", part, (str,)) for part in parts)
        role = _typed("role", message.get("role"), (str,))
        found.append({"role": role, "content": _typed("content", content, (str,))})
    if not found:
        raise GenerationError("There are no messages.", where="messages", need="one at least")
    if system and found[0]["role"] != "system":
        found.insert(0, {"role": "system", "content": system})
    return found


def _typed(field: str, value: Any, types: tuple[type, ...]) -> Any:
    if isinstance(value, types) and not (isinstance(value, bool) and bool not in types):
        return value
    need = " or ".join(each.__name__ for each in types)
    raise GenerationError(f"{field} is {value!r}.", where=field, need=need, remedy="pass another")
