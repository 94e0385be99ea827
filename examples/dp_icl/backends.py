"""The same model behind three backends: transformers, vLLM in process, and a vLLM server.

vLLM wants an environment of its own, in which this project is installed too (``pip install -e .``). It reads the
weights that ``load_smollm2`` converted in the environment of the extra ``llm``, from the cache both share. On
a CPU it is given its means by the environment:

    export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
    export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_NUM_OF_RESERVED_CPU=0 VLLM_CPU_OMP_THREADS_BIND=0
    export VLLM_ENABLE_V1_MULTIPROCESSING=0  # in process in the strict sense: one process less to start
"""

from __future__ import annotations

import importlib.metadata
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from record import DECODING, LANGUAGE_MODEL

from dp_icl.models import LanguageModel, OpenAILanguageModel, VLLMLanguageModel, load_smollm2
from dp_icl.models.conversion import default_cache

BACKENDS = ("transformers", "vllm", "vllm_server")

NAME = LANGUAGE_MODEL["model"]
WRITING = {key: DECODING[key] for key in ("max_new_tokens", "stop")}
START_SECONDS, REQUEST_SECONDS = 900.0, 600.0


@contextmanager
def language_model(backend: str) -> Iterator[LanguageModel]:
    """SmolLM2 behind the named backend; a server lives as long as the block."""
    with ExitStack() as stack:
        if backend == "transformers":
            yield load_smollm2(**WRITING)
        elif backend == "vllm":
            yield VLLMLanguageModel(converted_weights(), name=NAME, **WRITING)
        else:
            url = stack.enter_context(vllm_server(converted_weights()))
            yield OpenAILanguageModel(
                NAME, base_url=url, server=f"{vllm_version()}, float32", timeout=REQUEST_SECONDS, **WRITING
            )


def converted_weights() -> Path:
    """The directory that ``load_smollm2`` made, whichever version of transformers it was."""
    found = sorted(default_cache().glob(f"{Path(NAME).stem}-*-transformers-*/config.json"))
    if not found:
        msg = f"there are no converted weights in {default_cache()}; call dp_icl.models.load_smollm2() once."
        raise FileNotFoundError(msg)
    return found[-1].parent


def vllm_version() -> str:
    """Name and version of the installed distribution, such as ``vllm-cpu 0.32.0``."""
    name = importlib.metadata.packages_distributions()["vllm"][0]
    return f"{name} {importlib.metadata.version(name)}"


@contextmanager
def vllm_server(weights: Path) -> Iterator[str]:
    """Base URL of a vLLM server on this machine, once it is healthy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "model": weights,
        "served-model-name": NAME,
        "host": "127.0.0.1",
        "port": port,
        "dtype": "float32",
        "max-model-len": 1024,
        "max-logprobs": 20,
        "generation-config": "vllm",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager", *words]
    with subprocess.Popen(command) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/health", server)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def _wait(health: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    msg = f"the vLLM server did not become healthy (exit status {server.poll()}); its output says why."
    raise RuntimeError(msg)
