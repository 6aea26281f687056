# SPDX-License-Identifier: Apache-2.0
"""A language model answers as transformers does, whatever its state went through."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm.llm
from click.testing import CliRunner
from uir_tvm.cli import main
from uir_tvm.errors import ArtifactError, GenerationError, ModelFormatError, SizeError, StateError

from ..asked import asked
from .small import WORDS, model, tokenizer

LENGTH, CHUNK, NEW = 40, 8, 10
PROMPT = "w1 w2 w3"
LONG = " ".join(f"w{number}" for number in range(19))


@pytest.fixture(scope="module")
def loaded() -> uir_tvm.llm.LanguageModel:
    return uir_tvm.llm.load(model(), max_length=LENGTH, chunk=CHUNK, tokenizer=tokenizer())


@pytest.fixture
def one(loaded: uir_tvm.llm.LanguageModel) -> uir_tvm.llm.LanguageModel:
    loaded.reset()
    return loaded


def _wanted(tokens: list[int], count: int = NEW) -> list[int]:
    with torch.no_grad():
        found = model().generate(
            torch.tensor([tokens]), max_new_tokens=count, do_sample=False, eos_token_id=1, pad_token_id=1
        )
    made = found[0][len(tokens) :].tolist()
    return made[: made.index(1)] if 1 in made else made


@pytest.mark.parametrize("prompt", [PROMPT, LONG, "w7"])
def test_tokens_are_those_of_transformers(one: uir_tvm.llm.LanguageModel, prompt: str) -> None:
    """Prompts shorter and longer than a chunk, in one piece and streamed."""
    tokens = one.encode(prompt)
    assert tokens == tokenizer()(f"user {prompt} assistant")["input_ids"]
    text = one.generate(prompt, NEW)
    assert text == tokenizer().decode(_wanted(tokens), skip_special_tokens=True)
    pieces = list(one.generate(prompt, NEW, stream=True))
    assert "".join(pieces) == text and len(pieces) > 2
    # the state had the prompt already: but for its last token nothing of it was computed again
    assert one.figures.prompt_tokens == 1 and one.figures.new_tokens >= len(pieces) - 1


def test_prompts_one_after_the_other(one: uir_tvm.llm.LanguageModel) -> None:
    prompts = [PROMPT, "w7"]
    wanted = [one.generate(prompt, NEW) for prompt in prompts]
    assert one.generate(prompts, NEW) == wanted
    pieces = list(one.generate([[{"role": "user", "content": each}] for each in prompts], NEW, stream=True))
    assert ["".join(text for at, text in pieces if at == number) for number in (0, 1)] == wanted


def test_logits_of_every_token(one: uir_tvm.llm.LanguageModel) -> None:
    tokens = tokenizer()(LONG)["input_ids"]
    with torch.no_grad():
        wanted = model()(torch.tensor([tokens])).logits[0].numpy()
    np.testing.assert_allclose(one.prefill(tokens[:5]), wanted[4], atol=1e-4)
    for place in range(5, 12):
        np.testing.assert_allclose(one.decode(tokens[place]), wanted[place], atol=1e-4)
    np.testing.assert_allclose(one.prefill(tokens), wanted[-1], atol=1e-4)
    assert one.tokens == tokens


def test_conversations_apart(one: uir_tvm.llm.LanguageModel) -> None:
    """A clone goes on by itself; what both had is computed once."""
    tokens = one.encode(PROMPT)
    one.prefill(tokens)
    other = one.clone()
    first, second = one.decode(7), other.decode(9)
    assert one.tokens == [*tokens, 7] and other.tokens == [*tokens, 9]
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_allclose(other.decode(11), one.prefill([*tokens, 9, 11]), atol=1e-4)
    one.reset()
    assert one.tokens == [] and other.tokens[-1] == 11


def test_conversations_in_turns(one: uir_tvm.llm.LanguageModel) -> None:
    """Three clones, which are asked, forgotten, turned back and cloned anew in any order."""
    seed = 20261124
    rng, reference = np.random.default_rng(seed), model()
    models = [one, one.clone(), one.clone()]
    wanted: list[list[int]] = [[], [], []]
    for turn in range(asked(80, 1000)):
        which, what = (int(number) for number in rng.integers([3, 8]))
        tokens = wanted[which]
        if what == 0:
            models[which].reset()
            wanted[which] = []
            continue
        if what == 1:
            other = int(rng.integers(3))
            models[which], wanted[which] = models[other].clone(), list(wanted[other])
            continue
        if what < 4 or not tokens or len(tokens) == LENGTH:  # go on from somewhere before
            kept = tokens[: int(rng.integers(len(tokens) + 1))]
            tokens = [*kept, *rng.integers(WORDS, size=int(rng.integers(1, 13))).tolist()][:LENGTH]
            logits = models[which].prefill(tokens)
        else:
            tokens = [*tokens, int(rng.integers(WORDS))]
            logits = models[which].decode(tokens[-1])
        wanted[which] = tokens
        with torch.no_grad():
            found = reference(torch.tensor([tokens])).logits[0, -1].numpy()
        np.testing.assert_allclose(logits, found, atol=1e-4, err_msg=f"seed {seed}, turn {turn}")
        assert [each.tokens for each in models] == wanted


def test_answers_that_take_turns(one: uir_tvm.llm.LanguageModel) -> None:
    """Two streams of one model, and a prompt between them: each goes on as it does alone."""
    prompts = [PROMPT, LONG]
    wanted = [one.generate(prompt, NEW) for prompt in prompts]
    assert all(len(text.split()) > 2 for text in wanted)
    one.reset()
    streams = [one.generate(prompt, NEW, stream=True) for prompt in prompts]
    texts = ["", ""]
    for turn in range(2 * NEW):
        texts[turn % 2] += next(streams[turn % 2], "")
        if turn == 3:
            one.prefill([7, 8, 9])
    assert [text + "".join(rest) for text, rest in zip(texts, streams, strict=True)] == wanted


def test_figures_of_another_prompt(one: uir_tvm.llm.LanguageModel) -> None:
    """What the state has of a conversation that begins otherwise is computed again, and counted."""
    one.generate(LONG, 2)
    one.generate("w30 w31", 2)
    assert one.figures.prompt_tokens == len(one.encode("w30 w31")) - 1  # both begin with the user's role


def _contents(one: uir_tvm.llm.LanguageModel) -> dict[str, np.ndarray]:
    return {name: np.array(one.executable.state[name]) for name in one.executable.state}


def test_a_call_that_fails(one: uir_tvm.llm.LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half written state is refused until it is reset; clones have nothing of it."""
    tokens = [7, 8, 9]
    one.prefill(tokens)
    other, broken = one.clone(), one.clone()
    inside = broken.executable.specialized(np.array([[5]]), np.array([3]))
    run = inside._main

    def fails(*given: Any) -> Any:
        run(*given)
        raise RuntimeError("the device is gone")

    with monkeypatch.context() as patched:
        patched.setitem(vars(inside), "_program", None)  # not by C++ alone
        patched.setitem(vars(inside), "_main", fails)
        with pytest.raises(RuntimeError, match="gone"):
            broken.decode(5)
    uses: list[Any] = [lambda: broken.decode(5), lambda: broken.prefill(tokens), broken.clone]
    for use in uses:
        with pytest.raises(StateError, match="while it was written") as caught:
            use()
        assert "reset()" in caught.value.remedy
    with pytest.raises(StateError):
        broken.generate(PROMPT, NEW)
    wanted = other.decode(5)
    np.testing.assert_array_equal(one.decode(5), wanted)
    broken.reset()
    np.testing.assert_allclose(broken.prefill([*tokens, 5]), wanted, atol=1e-4)


def test_many_steps_take_no_memory(one: uir_tvm.llm.LanguageModel) -> None:
    """2,000 tokens of conversations that are turned back when the state is full."""

    def steps(count: int) -> None:
        for step in range(count):
            if len(one.tokens) == LENGTH:
                one.prefill(one.tokens[:3])
            one.decode(5 + step % 40)

    one.prefill([7, 8, 9])
    steps(200)
    tensors, before = one.executable.state.tensors, _resident()
    steps(2000)
    assert _resident() - before < 1 << 20
    assert one.executable.state.tensors is tensors


def _resident() -> int:
    """Bytes of memory that this process holds."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_sampling(one: uir_tvm.llm.LanguageModel) -> None:
    """Equal seeds draw equal tokens; of one token only the most likely one."""
    how: dict[str, Any] = {"temperature": 1.5, "top_p": 0.95, "repetition_penalty": 1.2}
    texts = [one.generate(PROMPT, NEW, seed=seed, **how) for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1] and len(set(texts)) > 1
    assert one.generate(PROMPT, NEW, temperature=1.0, top_k=1, seed=5) == one.generate(PROMPT, NEW)


def test_the_state_has_an_end(one: uir_tvm.llm.LanguageModel) -> None:
    """Refused before anything is written; an answer ends there."""
    many = [5 + number % 40 for number in range(LENGTH + 1)]
    one.prefill(many[:4])
    before = _contents(one)
    with pytest.raises(SizeError, match=f"{LENGTH + 1} tokens") as caught:
        one.prefill(many)
    assert one.tokens == many[:4] and "--max-length" in caught.value.remedy
    for name, value in _contents(one).items():
        np.testing.assert_array_equal(value, before[name])
    one.prefill(many[:LENGTH])
    before = _contents(one)
    with pytest.raises(SizeError):
        one.decode(5)
    for name, value in _contents(one).items():
        np.testing.assert_array_equal(value, before[name])
    one.generate(LONG, 100)
    assert len(one.tokens) <= LENGTH


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"stop": 1.5}, "stop"),
        ({"stop": b"w1"}, "stop"),
        ({"stop": ["w1", None]}, "stop"),
        ({"max_new_tokens": True}, "max_new_tokens"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
    ],
)
def test_parameters_out_of_range(one: uir_tvm.llm.LanguageModel, given: dict[str, Any], name: str) -> None:
    with pytest.raises(GenerationError, match=name):
        one.generate(PROMPT, **given)
    assert one.tokens == []


def _new_word(words: list[str]) -> int:
    """The place of a word that does not stand before it."""
    return next(place for place in range(2, len(words)) if words[place] not in words[:place])


def test_stops(one: uir_tvm.llm.LanguageModel) -> None:
    """An answer ends before a text or a token that was asked for; the state has what was computed."""
    words = one.generate(PROMPT, NEW).split()
    place = _new_word(words)
    wanted = words[:place]
    assert one.generate(PROMPT, NEW, stop=words[place]).split() == wanted
    token = one.tokenizer.convert_tokens_to_ids(words[place])
    assert one.generate(PROMPT, NEW, stop=[token, "nowhere"]).split() == wanted
    assert one.figures.new_tokens == place


HALVES = [("fp16", 0.02), ("bfloat16", 0.15)]


@pytest.mark.parametrize(("weights", "error"), asked([], HALVES))
def test_weights_of_16_bits(weights: str, error: float) -> None:
    """Near those in float32, and as near as torch in the same type; the state is half as large."""
    tokens = tokenizer()(LONG)["input_ids"][:CHUNK]
    dtype = {"fp16": torch.float16, "bfloat16": torch.bfloat16}[weights]
    with torch.no_grad():
        wanted = model(1)(torch.tensor([tokens])).logits[0, -1].numpy()
        theirs = model(1).to(dtype)(torch.tensor([tokens])).logits[0, -1].float().numpy()
    given = model(1)
    made = uir_tvm.llm.load(given, max_length=LENGTH, chunk=CHUNK, tokenizer=tokenizer(), weights=weights)
    found = made.prefill(tokens)
    assert found.dtype == np.float32 and given.dtype == torch.float32
    scale = np.abs(wanted).max()
    assert np.abs(found - wanted).max() / scale < error
    assert np.abs(found - wanted).max() < 2 * np.abs(theirs - wanted).max() + 1e-3 * scale
    whole = sum(parameter.numel() for parameter in given.parameters())
    assert 2 * whole <= made.nbytes.weights < 2 * whole + 1000  # beside the weights: rates of angles
    # keys and values of 2 heads of 8
    assert made.nbytes.state == 2 * (2 * 2 * 8 * LENGTH)


def test_weights_that_a_type_has_not() -> None:
    given = model()
    with torch.no_grad():
        given.model.layers[0].mlp.up_proj.weight[3, 4] = 1e5
    with pytest.raises(ModelFormatError, match="float16") as caught:
        uir_tvm.llm.load(given, max_length=LENGTH, tokenizer=tokenizer(), weights="float16")
    assert "100000" in caught.value.limit and given.dtype == torch.float32


def test_no_tokens(one: uir_tvm.llm.LanguageModel) -> None:
    with pytest.raises(GenerationError, match="no token"):
        one.generate("", template=False)


@pytest.mark.parametrize(
    "prompt", [None, 7, b"w1", [], [7], {"role": "user", "content": "w1"}, [{"role": "user"}]]
)
def test_what_is_no_prompt(one: uir_tvm.llm.LanguageModel, prompt: Any) -> None:
    with pytest.raises(GenerationError, match="The prompt is") as caught:
        one.generate(prompt)
    assert "content" in caught.value.need and one.tokens == []


@pytest.mark.parametrize("prompt", ["w1 \ud800", [{"role": "user", "content": "\udfff"}]])
def test_halves_of_characters(one: uir_tvm.llm.LanguageModel, prompt: Any) -> None:
    for template in (False, True):
        with pytest.raises(GenerationError, match="no text"):
            one.generate(prompt, template=template)


def test_what_a_template_refuses(one: uir_tvm.llm.LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [{"role": "system", "content": "w1"}]
    monkeypatch.setattr(one.tokenizer, "chat_template", "{{ raise_exception('roles take turns') }}")
    with pytest.raises(GenerationError, match="roles take turns") as caught:
        one.generate(messages)
    assert caught.value.where == "system"
    monkeypatch.setattr(one.tokenizer, "chat_template", None)
    with pytest.raises(GenerationError, match="no chat template"):
        one.generate(messages)


@pytest.mark.parametrize("tokens", [["w1"], [1.5], None, 7, [[7, 8]], "7"])
def test_what_are_no_tokens(one: uir_tvm.llm.LanguageModel, tokens: Any) -> None:
    one.prefill([7, 8])
    uses: list[Any] = [lambda: one.prefill(tokens), lambda: one.decode(tokens)]
    for use in uses if tokens != 7 else uses[:1]:
        with pytest.raises(GenerationError, match="no tokens"):
            use()
    assert one.tokens == [7, 8]


@pytest.mark.parametrize("token", [-1, WORDS, 2**40])
def test_tokens_that_the_model_does_not_know(one: uir_tvm.llm.LanguageModel, token: int) -> None:
    """Refused before the embedding is read beyond its end; the state stays as it is."""
    one.prefill([7, 8])
    uses: list[Any] = [lambda: one.decode(token), lambda: one.prefill([7, token, 8])]
    for use in uses:
        with pytest.raises(GenerationError, match=f"{token} is no token") as caught:
            use()
        assert f"0 to {WORDS - 1}" in caught.value.need and one.tokens == [7, 8]


@pytest.mark.parametrize("command", ["generate", "chat", "serve"])
def test_commands_look_at_options_before_the_model(command: str, tmp_path: pathlib.Path) -> None:
    prompt = ["--prompt", "w1"] if command == "generate" else []
    if command == "serve":
        pytest.importorskip("uvicorn")
    result = CliRunner().invoke(main, [command, str(tmp_path / "missing"), *prompt, "--top-p", "1.5"])
    assert result.exit_code and "top_p is 1.5" in result.output and "missing" not in result.output


def test_what_is_no_model(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ModelFormatError, match="no language model"):
        uir_tvm.llm.load(tmp_path / "missing")
    (tmp_path / "short.gguf").write_bytes(b"GGUF")
    with pytest.raises((ModelFormatError, uir_tvm.errors.MissingPackageError)):
        uir_tvm.llm.load(tmp_path / "short.gguf")
    (tmp_path / "other.gguf").write_bytes(b"ELF!")
    with pytest.raises(ModelFormatError, match="begins with"):
        uir_tvm.llm.load(tmp_path / "other.gguf")
    for wrong in (None, 7, torch.nn.Linear(2, 2)):
        with pytest.raises(ModelFormatError, match=f"{type(wrong).__name__} is no language model"):
            uir_tvm.llm.load(wrong)
    with pytest.raises(GenerationError, match="max_length is 1"):
        uir_tvm.llm.load(model(), max_length=1, tokenizer=tokenizer())
    with pytest.raises(GenerationError, match="at most 96"):
        uir_tvm.llm.load(model(), max_length=97, tokenizer=tokenizer())
    with pytest.raises(GenerationError, match="no tokenizer"):
        uir_tvm.llm.load(model())


def test_saved_and_by_the_command(one: uir_tvm.llm.LanguageModel, tmp_path: pathlib.Path) -> None:
    wanted = one.generate(PROMPT, NEW)
    folder = one.save(tmp_path / "saved")
    again = uir_tvm.llm.load(folder)
    assert again.generate(PROMPT, NEW) == wanted
    result = CliRunner().invoke(
        main, ["--json", "generate", str(folder), "--prompt", PROMPT, "--max-new-tokens", str(NEW)]
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert told["text"] == wanted and told["peak_bytes"] > told["weight_bytes"] > told["state_bytes"] > 0
    assert told["state_bytes"] == one.nbytes.state
    words = wanted.split()
    place = _new_word(words)
    stopped = ["generate", str(folder), "--prompt", PROMPT, "--stop", words[place]]
    assert CliRunner().invoke(main, stopped).stdout.split() == words[:place]
    result = CliRunner().invoke(
        main, ["chat", str(folder), "--max-new-tokens", "4"], input=f"{PROMPT}\nw4\n\n"
    )
    assert result.exit_code == 0, result.output
    assert words[0] in result.output and "MiB, weights" in result.output
    _check_damaged(folder)


def _check_damaged(folder: pathlib.Path) -> None:
    """A saved folder without a file, with one that is cut off, or of another version is refused by type."""
    settings = json.loads((folder / "llm.json").read_text())
    for text, match in (
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        (json.dumps({**settings, "format": settings["format"] + 1}), "is of format"),
        (json.dumps({**settings, "chunk": 0}), "cannot be read"),
        (json.dumps({**settings, "stop": None}), "cannot be read"),
    ):
        (folder / "llm.json").write_text(text)
        with pytest.raises(ArtifactError, match=match):
            uir_tvm.llm.load(folder)
    (folder / "llm.json").write_text(json.dumps(settings))
    for name in ("model.uir", "most_likely.uir"):
        data = (folder / name).read_bytes()
        for length in (0, 3, len(data) // 2, len(data) - 1):
            (folder / name).write_bytes(data[:length])
            with pytest.raises(ArtifactError):
                uir_tvm.llm.load(folder).generate(PROMPT, 2, repetition_penalty=1.1)
        (folder / name).unlink()
        with pytest.raises(ArtifactError):
            uir_tvm.llm.load(folder)
        (folder / name).write_bytes(data)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ArtifactError, match="tokenizer"):
        uir_tvm.llm.load(folder)
