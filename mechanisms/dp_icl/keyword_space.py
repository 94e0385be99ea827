"""Keyword Space Aggregation: text generation from words that many partitions use, drawn at random.

Wu et al., "Privacy-Preserving In-Context Learning for Large Language Models" (2023); in the SnapAudit paper Algorithm
6. The stages, apart from one another:

- recorded: what the model said, one text per partition, shape (T,);
- :meth:`KeywordSpaceAggregation.aggregate`: in how many of the T texts each token of a public vocabulary occurs,
  shape (V,). A token that a text repeats counts once, and words outside the vocabulary not at all;
- :meth:`KeywordSpaceAggregation.privatize`: a sequence of K tokens from the joint exponential mechanism, shape (K,);
- :meth:`KeywordSpaceAggregation.release`: the same tokens without their order;
- :meth:`KeywordSpaceAggregation.answer`: what a model makes of these words, which sees nothing else.

A neighbouring dataset changes one partition (:mod:`dp_icl.partition`), hence one text: it leaves the counts and
another one joins them, and every count moves by −1, 0 or 1. That holds for replacing an exemplar and, dealt by
content, for adding or removing one, as its partition then says something else and does not fall silent. How far
losses move apart then, and so the rate η = ε / spread, is derived in :mod:`dp_icl.joint_exponential_privacy`: η is
ε/2 for K = 1 as in the papers, but ε/4 for K ≥ 2 (with three or more partitions and tokens).

The claim is pure, δ = 0. The drawn sequence is all that stands between the counts and the public, and it satisfies
the claim itself, so the claim covers the sequence (white-box) as well as the set and the answer (black-box). The
paper's white-box attacker sees Gumbel-noised counts instead, which satisfy no such claim
(:mod:`dp_icl.gumbel_keywords`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dp_icl.calibration import validate_epsilon
from dp_icl.equal_rows import groups_of_equal_rows
from dp_icl.joint_exponential import JointExponential, validate_counts, validate_keywords
from dp_icl.joint_exponential_privacy import loss_spread
from dp_icl.partition import Adjacency, split, validate_adjacency, validate_partitions, validate_seed
from dp_icl.words import tokenise, validate_vocabulary

TextModel = Callable[[tuple[Any, ...]], str | None]
Writer = Callable[[tuple[str, ...], str], str]


@dataclass(frozen=True, repr=False)
class KeywordSpaceAggregation:
    """ε-differentially private keywords, and an answer made of them, for one query.

    Args:
        vocabulary: the V ≥ 1 tokens to choose from, different words as :func:`~dp_icl.words.tokenise` yields them.
            Public: it must not depend on the exemplars or on what the model said.
        partitions: number T ≥ 1 of disjoint partitions.
        keywords: number K of tokens to draw, from 1 to V.
        epsilon: claimed ε, finite and at least 0; δ is 0.
        seed: deals the exemplars to the partitions.
        model: ``model(partition)`` answers the query from the exemplars of one partition (none of them, when there
            are more partitions than exemplars: a zero-shot answer) with a text, or None for an empty one. It must be
            deterministic and is never shown two partitions at once, on which the sensitivity rests. Without a
            model, datasets are recorded texts.
        writer: ``writer(words, query)`` answers the query with the drawn words in mind; it may be a model, or
            :class:`~dp_icl.recorded_answers.RecordedAnswers`.
        adjacency: ``"replace-one"`` or ``"add-remove"`` (of one exemplar); it decides how exemplars are dealt to
            the partitions. One text changes under either.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument is out of range.
    """

    vocabulary: tuple[str, ...]
    partitions: int
    keywords: int
    epsilon: float
    seed: int = 0
    model: TextModel | None = field(default=None, hash=False)
    writer: Writer | None = field(default=None, hash=False)
    adjacency: Adjacency = "replace-one"

    deterministic: ClassVar[bool] = True
    sensitivity: ClassVar[float] = 1.0
    norm: ClassVar[str] = "linf"
    claimed_views: ClassVar[frozenset[str]] = frozenset({"black-box", "white-box"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocabulary", validate_vocabulary(self.vocabulary))
        object.__setattr__(self, "partitions", validate_partitions(self.partitions))
        object.__setattr__(self, "keywords", validate_keywords(self.keywords, len(self.vocabulary)))
        object.__setattr__(self, "epsilon", validate_epsilon(self.epsilon))
        object.__setattr__(self, "seed", validate_seed(self.seed))
        object.__setattr__(self, "adjacency", validate_adjacency(self.adjacency))
        for name in ("model", "writer"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                msg = f"{name} must be callable or None, got {value!r} of type {type(value).__name__}."
                raise TypeError(msg)

    def __repr__(self) -> str:
        tokens = repr(self.vocabulary)
        if len(tokens) > 60:
            tokens = f"<{len(self.vocabulary)} tokens>"
        text = f"vocabulary={tokens}, partitions={self.partitions}, keywords={self.keywords}, epsilon={self.epsilon}"
        if self.seed:
            text += f", seed={self.seed}"
        if self.adjacency != "replace-one":
            text += f", adjacency={self.adjacency!r}"
        return f"{type(self).__name__}({text})"

    @property
    def rate(self) -> float:
        """η, the log-probability that a sequence loses per count it falls short: ε over the spread."""
        return self.epsilon / loss_spread(self.keywords, len(self.vocabulary), self.partitions)

    @property
    def claim(self) -> tuple[float, float]:
        """The claimed (ε, δ); δ is 0."""
        return self.epsilon, 0.0

    def responses(self, exemplars: Sequence[Any]) -> NDArray[np.str_]:
        """What the model says, asked once per partition; the part worth recording.

        Args:
            exemplars: n exemplars of any kind.

        Returns:
            (T,) texts as the model gave them, "" for None.

        Raises:
            ValueError: the mechanism has no model.
            TypeError: ``exemplars`` is not a sequence, or the model answered with neither text nor None.
        """
        if self.model is None:
            msg = "KeywordSpaceAggregation has no model to ask; construct it with model=..., or use recorded texts."
            raise ValueError(msg)
        parts = split(exemplars, self.partitions, self.seed, self.adjacency)
        return np.array([_text(self.model(part)) for part in parts])

    def record(self, exemplars: Sequence[Any], size: int, rng: Generator) -> NDArray[np.str_]:
        """``size`` evaluations of :meth:`responses`, (size, T), in the form a snapshot records."""
        return np.stack([self.responses(exemplars) for _ in range(size)])

    def aggregate(self, texts: ArrayLike) -> NDArray[np.int64]:
        """Count in how many texts each token occurs.

        Args:
            texts: (T,) what the model said; "" or None is a text without words.

        Returns:
            (V,) counts from 0 to T, in the order of the vocabulary.

        Raises:
            TypeError: something is not a text.
            ValueError: there is not one text per partition.
        """
        said = np.asarray(texts)
        if said.shape != (self.partitions,):
            msg = (
                f"texts must hold one text per partition, shape ({self.partitions},), got shape {said.shape}."
            )
            raise ValueError(msg)
        counts = np.zeros(len(self.vocabulary), np.int64)
        for text in said.tolist():
            words = (self._index[word] for word in tokenise(_text(text)) if word in self._index)
            for token, times in self._contribution(words).items():
                counts[token] += times
        return counts

    def clean(self, dataset: Any, rng: Generator) -> NDArray[np.int64]:
        """Counts without noise.

        Args:
            dataset: the exemplars when there is a model, else the recorded texts, (T,).
            rng: unused; the clean stage is deterministic.

        Returns:
            (V,) counts, one per token.
        """
        return self.aggregate(dataset if self.model is None else self.responses(dataset))

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.intp]:
        """Draw keywords for every row of counts.

        Equal rows are prepared once and drawn from together. Rows of one broadcast row need the memory of one.

        Args:
            clean_rows: (n, V) counts; never modified.
            rng: source of the randomness.

        Returns:
            (n, K) token indices, in the order drawn, different within a row.

        Raises:
            TypeError: the counts are not numbers.
            ValueError: the rows are not of length V, or a count is not a whole number from 0 to T.
        """
        rows = self._rows(clean_rows)
        drawn = np.empty((len(rows), self.keywords), np.intp)
        for row, where in groups_of_equal_rows(rows):
            drawn[where] = self._draw(row, len(drawn[where]), rng)
        return drawn

    def release(self, drawn: ArrayLike, rng: Generator) -> NDArray[np.intp]:
        """The keywords without the order they were drawn in.

        Args:
            drawn: (n, K) token indices.
            rng: unused; post-processing adds no randomness.

        Returns:
            (n, K) token indices, ascending in every row.

        Raises:
            TypeError: the indices are not integers.
            ValueError: the rows are not of length K.
        """
        indices = np.asarray(drawn)
        if indices.dtype.kind not in "iu":
            msg = f"drawn must hold token indices, got dtype {indices.dtype}."
            raise TypeError(msg)
        if indices.ndim != 2 or indices.shape[1] != self.keywords:
            msg = f"drawn must have shape (n, {self.keywords}), one row of token indices per draw, got {indices.shape}."
            raise ValueError(msg)
        return np.sort(indices.astype(np.intp, copy=False), axis=1)

    def answer(self, keywords: ArrayLike, query: str) -> NDArray[np.str_]:
        """The final answers: post-processing of the keywords, at no further cost in privacy.

        The writer is asked once for every set of keywords, and is told their words in the order of the vocabulary.

        Args:
            keywords: (n, K) token indices, in any order.
            query: public, given to the writer.

        Returns:
            (n,) texts.

        Raises:
            TypeError: the indices are not integers, or the writer did not answer with a text.
            ValueError: the mechanism has no writer, or the indices have another shape or range.
        """
        if self.writer is None:
            msg = "KeywordSpaceAggregation has no writer to ask; construct it with writer=...."
            raise ValueError(msg)
        rows = np.asarray(keywords)
        if rows.dtype.kind not in "iu":
            msg = f"keywords must be token indices, got dtype {rows.dtype}."
            raise TypeError(msg)
        size = len(self.vocabulary)
        if rows.ndim != 2 or rows.shape[1] != self.keywords or ((rows < 0) | (rows >= size)).any():
            msg = (
                f"keywords must be token indices in [0, {size}) of shape (n, {self.keywords}), "
                f"got shape {rows.shape}."
            )
            raise ValueError(msg)
        sets, which = np.unique(np.sort(rows, axis=1), axis=0, return_inverse=True)
        written = [self.writer(tuple(self.vocabulary[i] for i in each), query) for each in sets]
        for text in written:
            if not isinstance(text, str):
                msg = f"writer must return a text, got {text!r} of type {type(text).__name__}."
                raise TypeError(msg)
        return np.array(written, np.str_)[which.reshape(-1)]

    def _rows(self, clean_rows: ArrayLike) -> NDArray[Any]:
        rows = np.asarray(clean_rows)
        if rows.ndim != 2 or rows.shape[1] != len(self.vocabulary):
            msg = f"clean_rows must have shape (n, {len(self.vocabulary)}), one count per token, got {rows.shape}."
            raise ValueError(msg)
        return rows

    @cached_property
    def _index(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.vocabulary)}

    def _contribution(self, tokens: Iterable[int]) -> dict[int, int]:
        return dict.fromkeys(tokens, 1)

    def _draw(self, counts: NDArray[Any], size: int, rng: Generator) -> NDArray[np.intp]:
        return JointExponential(self._validated(counts), self.keywords, self.rate).sample(size, rng)

    def _validated(self, counts: NDArray[Any]) -> NDArray[np.int64]:
        whole = validate_counts(counts)
        if whole.min() < 0 or whole.max() > self._most:
            msg = f"counts must lie in [0, {self._most}], got {whole.min()} to {whole.max()}."
            raise ValueError(msg)
        return whole

    @property
    def _most(self) -> int:
        return self.partitions


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    msg = f"a response must be a text or None, got {value!r} of type {type(value).__name__}."
    raise TypeError(msg)
