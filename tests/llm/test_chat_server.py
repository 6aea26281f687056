# SPDX-License-Identifier: Apache-2.0
"""The server answers as OpenAI's interface has it, with the model's texts, and refuses with typed errors."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import pytest
import uir_tvm.llm
from click.testing import CliRunner
from uir_tvm.cli import main

pytest.importorskip("httpx", reason="the test client of starlette")
testclient = pytest.importorskip("starlette.testclient", reason="pip install 'uir_tvm[serve]'")

from uir_tvm.llm.chat_server import chat_server  # noqa: E402

from .small import model, tokenizer  # noqa: E402

MESSAGES = [{"role": "user", "content": "w1 w2 w3"}]


@pytest.fixture(scope="module")
def loaded() -> Any:
    return uir_tvm.llm.load(model(1), max_length=32, chunk=8, tokenizer=tokenizer())


@pytest.fixture(scope="module")
def client(loaded: Any) -> Any:
    return testclient.TestClient(chat_server(loaded, "small"))


def _events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_models_are_listed(client: Any) -> None:
    (row,) = client.get("/v1/models").json()["data"]
    assert row["id"] == "small" and row["object"] == "model"


def test_a_chat_is_answered_whole_and_streamed(client: Any, loaded: Any) -> None:
    wanted = loaded.generate(MESSAGES, 6)
    asked = {"model": "small", "messages": MESSAGES, "max_tokens": 6, "temperature": 0}
    whole = client.post("/v1/chat/completions", json=asked).json()
    (choice,) = whole["choices"]
    assert choice["message"] == {"role": "assistant", "content": wanted} and whole["model"] == "small"
    assert choice["finish_reason"] in ("stop", "length")
    usage, prompt = whole["usage"], len(loaded.encode(MESSAGES))
    assert usage["prompt_tokens"] == prompt and 0 < usage["completion_tokens"] <= 6
    assert usage["total_tokens"] == prompt + usage["completion_tokens"]
    answer = client.post("/v1/chat/completions", json={**asked, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    chunks = [event["choices"][0] for event in _events(answer.text)]
    assert chunks[0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(chunk["delta"].get("content", "") for chunk in chunks) == wanted
    assert chunks[-1]["finish_reason"] == choice["finish_reason"]


def test_a_text_goes_on_and_equal_seeds_draw_equal_tokens(client: Any, loaded: Any) -> None:
    given = {"max_tokens": 5, "temperature": 0.9, "top_k": 20, "seed": 4}
    wanted = loaded.generate("w5 w6", 5, temperature=0.9, top_k=20, seed=4, template=False)
    answer = client.post("/v1/completions", json={"prompt": "w5 w6", **given}).json()
    assert answer["choices"][0]["text"] == wanted
    streamed = client.post("/v1/completions", json={"prompt": "w5 w6", **given, "stream": True}).text
    assert "".join(event["choices"][0]["text"] for event in _events(streamed)) == wanted


def test_what_ended_an_answer_is_told(client: Any, loaded: Any) -> None:
    first = loaded.generate("w5 w6", 1, template=False)
    asked = {"prompt": "w5 w6", "temperature": 0}
    short = client.post("/v1/completions", json={**asked, "max_tokens": 1}).json()
    assert short["choices"][0]["finish_reason"] == "length" and short["usage"]["completion_tokens"] == 1
    ended = client.post("/v1/completions", json={**asked, "max_tokens": 4, "stop": first.strip()}).json()
    assert ended["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("path", "asked", "param"),
    [
        ("chat/completions", {}, "messages"),
        ("chat/completions", {"messages": []}, "messages"),
        ("chat/completions", {"messages": [{"role": "user"}]}, "content"),
        ("chat/completions", {"messages": MESSAGES, "n": 2}, "n"),
        ("chat/completions", {"messages": MESSAGES, "temperature": "hot"}, "temperature"),
        ("chat/completions", {"messages": MESSAGES, "top_p": 3}, None),
        ("chat/completions", {"messages": MESSAGES, "seed": -1}, None),
        ("completions", {"prompt": 3}, "prompt"),
        ("completions", {"prompt": "w1 " * 40}, None),
    ],
)
def test_requests_are_refused_with_a_type(client: Any, path: str, asked: Any, param: str | None) -> None:
    for stream in (False, True):
        answer = client.post(f"/v1/{path}", json={**asked, "stream": stream})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error" and error["code"] in ("GenerationError", "SizeError")
        assert param is None or error["param"] == param


def test_after_an_answer_that_fails(client: Any, loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is told by JSON, whole and in events; the next request is answered, from the beginning."""
    asked = {"prompt": "w5 w6", "max_tokens": 4, "temperature": 0}
    wanted = client.post("/v1/completions", json=asked).json()["choices"][0]["text"]

    def fails(*_: Any) -> Any:
        raise RuntimeError("the device is gone")

    for stream in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(loaded, "_after", fails)
            answer = client.post("/v1/completions", json={**asked, "stream": stream})
        told = _events(answer.text)[-1] if stream else answer.json()
        assert answer.status_code == (200 if stream else 500)
        assert told["error"]["type"] == "server_error" and "device is gone" in told["error"]["message"]
        assert loaded.tokens == []
        assert client.post("/v1/completions", json=asked).json()["choices"][0]["text"] == wanted


def test_no_json_is_refused(client: Any) -> None:
    deep = client.post("/v1/completions", content=b"[" * 100_000)
    assert deep.status_code == 400
    answer = client.post("/v1/completions", content=b"prompt")
    assert answer.status_code == 400 and "no JSON" in answer.json()["error"]["message"]


def test_the_command_serves_this_machine_alone(
    loaded: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uvicorn = pytest.importorskip("uvicorn", reason="pip install 'uir_tvm[serve]'")
    served: dict[str, Any] = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **named: served.update(named, app=app))
    loaded.save(tmp_path / "saved")
    told = CliRunner().invoke(main, ["serve", str(tmp_path / "saved"), "--port", "8123"])
    assert told.exit_code == 0, told.output
    assert (served["host"], served["port"]) == ("127.0.0.1", 8123)
    (row,) = testclient.TestClient(served["app"]).get("/v1/models").json()["data"]
    assert row["id"] == "saved"


def test_what_a_request_does_not_say(loaded: Any) -> None:
    """Is as the server was told; what it says holds. So it is with the message of the system."""
    how = {"max_new_tokens": 3, "temperature": 0.0}
    client = testclient.TestClient(chat_server(loaded, "small", how, system="w9"))
    told = [{"role": "system", "content": "w9"}, *MESSAGES]
    answers = {}
    for count, asked in ((3, {}), (2, {"max_tokens": 2})):
        given = client.post("/v1/chat/completions", json={"messages": MESSAGES, **asked}).json()
        answers[count] = given["choices"][0]["message"]["content"]
        assert answers[count] == loaded.generate(told, count)
        assert given["usage"]["prompt_tokens"] == len(loaded.encode(told))
    own = [{"role": "system", "content": "w8"}, *MESSAGES]
    found = client.post("/v1/chat/completions", json={"messages": own}).json()
    assert found["choices"][0]["message"]["content"] == loaded.generate(own, 3)


def test_the_command_takes_what_chat_takes(
    loaded: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How the model is loaded, and defaults of answers; wrong ones are refused before anything is loaded."""
    uvicorn = pytest.importorskip("uvicorn", reason="pip install 'uir_tvm[serve]'")
    served: dict[str, Any] = {}
    given: dict[str, Any] = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **named: served.update(app=app))
    monkeypatch.setattr(uir_tvm.llm, "load", lambda *args, **named: given.update(named) or loaded)
    options = ["--cache", "bfloat16", "--activation", "int8", "--weights", "q8", "--max-length", "24"]
    answers = ["--temperature", "0", "--max-new-tokens", "2", "--system", "w9", "--stop", "w3"]
    told = CliRunner().invoke(main, ["serve", "model.gguf", *options, *answers])
    assert told.exit_code == 0, told.output
    assert given["cache"] == "bfloat16" and given["activation"] == "int8" and given["weights"] == "q8"
    assert given["max_length"] == 24 and "MiB, weights" in told.output
    client = testclient.TestClient(served["app"])
    found = client.post("/v1/chat/completions", json={"messages": MESSAGES}).json()
    messages = [{"role": "system", "content": "w9"}, *MESSAGES]
    assert found["choices"][0]["message"]["content"] == loaded.generate(messages, 2, stop="w3")
    given.clear()
    for wrong in (["--cache", "int3"], ["--top-p", "3"]):
        assert CliRunner().invoke(main, ["serve", "model.gguf", *wrong]).exit_code != 0
    assert not given


def test_without_uvicorn_the_command_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    told = CliRunner().invoke(main, ["serve", "model.gguf"])
    assert told.exit_code != 0 and "uir_tvm[serve]" in told.output
