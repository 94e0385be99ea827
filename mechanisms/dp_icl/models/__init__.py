"""Language models and embedding models behind two small protocols; none is loaded before it is built."""

from dp_icl.models.journal import Journal, JournaledEmbeddingModel, JournaledLanguageModel, digest
from dp_icl.models.protocols import JSON, EmbeddingModel, LanguageModel
from dp_icl.models.sentence_transformer import SentenceTransformerModel, load_minilm
from dp_icl.models.transformers_model import TransformersLanguageModel, load_smollm2

__all__ = [
    "JSON",
    "EmbeddingModel",
    "Journal",
    "JournaledEmbeddingModel",
    "JournaledLanguageModel",
    "LanguageModel",
    "SentenceTransformerModel",
    "TransformersLanguageModel",
    "digest",
    "load_minilm",
    "load_smollm2",
]
