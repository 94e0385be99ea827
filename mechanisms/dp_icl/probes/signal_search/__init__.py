"""Searches for two sentences that a model can be told to say and whose embeddings are far apart.

An audit of a mechanism that releases a noisy mean embedding sees the canary through the distance of two
answers: the further apart, the more of the claimed ε a lower bound can reach. The limit is 2.
"""

from dp_icl.probes.signal_search.checkpoint import Checkpoint
from dp_icl.probes.signal_search.gradient import GradientEmbeddingModel, gradient_search
from dp_icl.probes.signal_search.greedy import multi_sweep_greedy_search, single_sweep_greedy_search
from dp_icl.probes.signal_search.minilm import WordGradientModel, load_minilm_gradients
from dp_icl.probes.signal_search.pairs import (
    SearchResult,
    SignalPair,
    embedding_distance,
    load_signal_pairs,
    read_pairs,
    write_pairs,
)
from dp_icl.probes.signal_search.vocabulary import load_words, random_sentences
from dp_icl.probes.signal_search.written import (
    REQUESTS,
    WrittenAnswer,
    WrittenResult,
    model_written_pairs,
    two_sentences,
)

__all__ = [
    "REQUESTS",
    "Checkpoint",
    "GradientEmbeddingModel",
    "SearchResult",
    "SignalPair",
    "WordGradientModel",
    "WrittenAnswer",
    "WrittenResult",
    "embedding_distance",
    "gradient_search",
    "load_minilm_gradients",
    "load_signal_pairs",
    "load_words",
    "model_written_pairs",
    "multi_sweep_greedy_search",
    "random_sentences",
    "read_pairs",
    "single_sweep_greedy_search",
    "two_sentences",
    "write_pairs",
]
