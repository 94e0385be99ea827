"""A sentence embedding in NumPy: the mean of word vectors at unit length, with its exact gradient."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class ToyEmbedding:
    """Word vectors on a table; counts the texts it embeds and can be interrupted after so many calls."""

    def __init__(self, table: Mapping[str, Sequence[float]], *, calls: int | None = None) -> None:
        self.table = {word: np.asarray(vector, np.float64) for word, vector in table.items()}
        self._rows = {word: row for row, word in enumerate(self.table)}
        self._vectors = np.asarray(list(self.table.values()))
        self.calls = calls
        self.called = 0
        self.embedded = 0

    @property
    def provenance(self) -> Mapping[str, object]:
        return {"model": "toy", "table": [[word, *vector] for word, vector in self.table.items()]}

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(self.table)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.calls is not None:
            if self.calls == 0:
                raise KeyboardInterrupt
            self.calls -= 1
        self.called += 1
        self.embedded += len(texts)
        # the sentences of one call need not be equally long
        sums = np.asarray(
            [self._vectors[[self._rows[w] for w in text.split()]].sum(axis=0) for text in texts]
        )
        return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)

    def unit(self, words: Sequence[str]) -> NDArray[np.float64]:
        mean = np.mean([self.table[word] for word in words], axis=0)
        return mean / np.linalg.norm(mean)

    def replacement_slopes(
        self, words: Sequence[str], position: int, anchor: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        vectors = np.asarray([self.table[word] for word in words])
        length = np.linalg.norm(vectors.mean(axis=0))
        unit = vectors.mean(axis=0) / length
        gradient = (anchor - (unit @ anchor) * unit) / (length * len(words))
        return self._vectors @ gradient


def words(count: int) -> list[str]:
    """``count`` different words."""
    return ["".join(letters) for letters in itertools.islice(itertools.product("abcdefgh", repeat=3), count)]


def random_embedding(count: int, dimensions: int, seed: int, **options: int) -> ToyEmbedding:
    """Independent normal word vectors, moved off the centre so that no mean of a few is zero."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, dimensions)) + 0.2
    return ToyEmbedding(dict(zip(words(count), vectors.tolist(), strict=True)), **options)


def furthest_distance(model: ToyEmbedding, length: int) -> float:
    """Largest distance of two sentences of so many words, by trying all."""
    sentences = itertools.combinations_with_replacement(model.table, length)
    rows = np.asarray([model.unit(sentence) for sentence in sentences])
    return float(np.sqrt(max(0.0, 2 - 2 * (rows @ rows.T).min())))
