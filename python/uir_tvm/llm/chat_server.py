# SPDX-License-Identifier: Apache-2.0
"""A language model behind the HTTP interface of OpenAI.

It has ``/v1/models``, ``/v1/chat/completions`` and ``/v1/completions``. Answers are made one after the other:
the model has one state. Texts stream as server-sent events.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..errors import GenerationError, MissingPackageError, SizeError, UirError, first_line
from .completion_request import DEFAULTS, arguments_of, prompt_of, read_request, streams
from .language_model import LanguageModel

#: Of errors in what a request says; others are the server's own.
ASKED_WRONG = (GenerationError, SizeError)

logger = logging.getLogger(__name__)


def chat_server(
    model: LanguageModel, name: str, defaults: Mapping[str, Any] = DEFAULTS, system: str = ""
) -> Any:
    """An ASGI application that answers with a model.

    Parameters
    ----------
    model : LanguageModel
        Of one conversation (``batch=1``).
    name : str
        What it is called in ``/v1/models``.
    defaults : mapping of str to object
        Arguments of `LanguageModel.generate` of which a request says nothing. Default: a temperature of 1.
    system : str
        What the model is told first, where a chat tells it nothing.

    Returns
    -------
    starlette.applications.Starlette

    Raises
    ------
    MissingPackageError
        starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse, StreamingResponse
        from starlette.routing import Route
    except ImportError as error:
        raise MissingPackageError(
            "The server needs starlette, which is not installed.",
            limit=str(error),
            remedy="pip install 'uir_tvm[serve]'",
        ) from error
    answers = _Answers(model, name, defaults, system)

    async def completion(request: Any, chat: bool) -> Any:
        try:
            asked = read_request(await request.body())
            answer = answers.begun(asked, chat)
            if streams(asked):
                return StreamingResponse(answer.events(), media_type="text/event-stream")
            from starlette.concurrency import run_in_threadpool

            return JSONResponse(await run_in_threadpool(answer.whole))
        except Exception as error:  # whatever a device raises, too: a client reads JSON
            status = 400 if isinstance(error, ASKED_WRONG) else 500
            return JSONResponse({"error": _error(error, status)}, status_code=status)

    async def chats(request: Any) -> Any:
        return await completion(request, True)

    async def texts(request: Any) -> Any:
        return await completion(request, False)

    async def models(_request: Any) -> Any:
        row = {"id": name, "object": "model", "created": answers.created, "owned_by": "uir_tvm"}
        return JSONResponse({"object": "list", "data": [row]})

    return Starlette(
        routes=[
            Route("/v1/models", models),
            Route("/v1/chat/completions", chats, methods=["POST"]),
            Route("/v1/completions", texts, methods=["POST"]),
        ]
    )


def _error(error: Exception, status: int) -> dict[str, Any]:
    kind = "invalid_request_error" if status == 400 else "server_error"
    ours = error if isinstance(error, UirError) else None
    if status == 500:
        logger.error("an answer failed", exc_info=error)
    return {
        "message": ours.render() if ours else first_line(error),
        "type": kind,
        "param": (ours.where if ours else "") or None,
        "code": type(error).__name__,
    }


@attrs.frozen
class _Answers:
    """Makes answers, one after the other."""

    model: LanguageModel
    name: str
    defaults: Mapping[str, Any]
    system: str
    created: int = attrs.field(factory=lambda: int(time.time()))
    lock: threading.Lock = attrs.field(factory=threading.Lock)

    def begun(self, asked: dict[str, Any], chat: bool) -> _Answer:
        """The answer of a request, of which nothing is computed yet."""
        prompt = prompt_of(asked, chat, self.system)
        given = arguments_of(asked, self.defaults)
        pieces = self.model.generate(prompt, stream=True, template=chat, **given)
        return _Answer(self, pieces, len(self.model.encode(prompt, chat)), chat)


@attrs.define
class _Answer:
    """One answer: all of it, or events."""

    of: _Answers
    pieces: Iterator[str]
    prompt_tokens: int
    chat: bool
    id: str = attrs.field(factory=lambda: f"uir-{uuid.uuid4().hex[:24]}")

    def whole(self) -> dict[str, Any]:
        """The answer as one object."""
        with self.of.lock:
            text, figures = "".join(self._made()), self.of.model.figures
        count = figures.answer_tokens
        usage = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": count,
            "total_tokens": self.prompt_tokens + count,
        }
        said = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._object(kind, said, figures.finish), "usage": usage}

    def events(self) -> Iterator[str]:
        """A line of data for each piece, and what ends them; an error is the last one."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        try:
            with self.of.lock:
                if self.chat:
                    yield _event(self._object(kind, {"delta": {"role": "assistant", "content": ""}}, None))
                for piece in self._made():
                    said = {"delta": {"content": piece}} if self.chat else {"text": piece}
                    yield _event(self._object(kind, said, None))
                last: dict[str, Any] = {"delta": {}} if self.chat else {"text": ""}
                yield _event(self._object(kind, last, self.of.model.figures.finish))
        except Exception as error:  # as above
            yield _event({"error": _error(error, 500)})
        yield "data: [DONE]\n\n"

    def _made(self) -> Iterator[str]:
        """The pieces; after an error the state is forgotten, which may be half written."""
        try:
            yield from self.pieces
        except Exception:
            self.of.model.reset()
            raise

    def _object(self, kind: str, said: dict[str, Any], finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, **said, "finish_reason": finish}
        return {
            "id": self.id,
            "object": kind,
            "created": int(time.time()),
            "model": self.of.name,
            "choices": [choice],
        }


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"
