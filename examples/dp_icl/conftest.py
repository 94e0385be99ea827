import re
import sys
from pathlib import Path

import pytest

LIVE = {
    "vllm": "asks vLLM in process, in an environment of its own; only with -m vllm",
    "vllm_server": "asks a vLLM server, in an environment of its own; only with -m vllm_server",
}


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in LIVE.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what asks a model, unless ``-m`` names it."""
    wanted = set(re.findall(r"\w+", config.getoption("markexpr")))
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in LIVE.keys() - wanted)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what a recording cost, if there was one."""
    record = sys.modules.get("record")
    if record is None or Path(str(record.__file__)).parent != Path(__file__).parent:
        return
    for model in (record.language_model, record.embedding_model):
        if model.cache_info().currsize:
            terminalreporter.write_line(f"{model.__name__}: {model().calls}")
