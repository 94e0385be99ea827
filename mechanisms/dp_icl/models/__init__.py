"""Language models and embedding models behind two small protocols; none is loaded before it is built."""

from dp_icl.models.adaptive import AdaptiveRecording, Look, record_adaptively
from dp_icl.models.conversion import converted
from dp_icl.models.journal import CallCounts, CallKey, Journal, PartlyAnsweredError, digest
from dp_icl.models.journaled import JournaledEmbeddingModel, JournaledLanguageModel
from dp_icl.models.openai_model import ModelServerError, OpenAILanguageModel
from dp_icl.models.protocols import JSON, EmbeddingModel, LanguageModel
from dp_icl.models.retry import Retries
from dp_icl.models.sentence_transformer import SentenceTransformerModel, load_minilm
from dp_icl.models.transformers_model import TransformersLanguageModel, load_smollm2
from dp_icl.models.vllm_model import VLLMLanguageModel

__all__ = [
    "JSON",
    "AdaptiveRecording",
    "CallCounts",
    "CallKey",
    "EmbeddingModel",
    "Journal",
    "JournaledEmbeddingModel",
    "JournaledLanguageModel",
    "LanguageModel",
    "Look",
    "ModelServerError",
    "OpenAILanguageModel",
    "PartlyAnsweredError",
    "Retries",
    "SentenceTransformerModel",
    "TransformersLanguageModel",
    "VLLMLanguageModel",
    "converted",
    "digest",
    "load_minilm",
    "load_smollm2",
    "record_adaptively",
]
