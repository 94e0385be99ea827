"""The state of a search in one JSON file, so that an interrupted search goes on where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dp_icl.models.journal import digest
from dp_icl.models.protocols import JSON


class Checkpoint:
    """Keeps the latest state of one search; the file is replaced as a whole, so it is never half written.

    Args:
        path: the file, or None to keep nothing.
        configuration: all that the search depends on; JSON values.

    Raises:
        ValueError: the file is not a checkpoint, or one of another search.
    """

    def __init__(self, path: str | os.PathLike[str] | None, configuration: Mapping[str, JSON]) -> None:
        self._path = None if path is None else Path(path)
        self._key = digest(configuration)
        self.state: dict[str, Any] | None = None
        if self._path is None or not self._path.exists():
            return
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            key, self.state = content["search"], dict(content["state"])
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{self._path} is not the checkpoint of a search ({error!r}); delete it to start anew."
            raise ValueError(msg) from error
        if key != self._key:
            msg = (
                f"{self._path} is the checkpoint of a search with another model, vocabulary or parameters; "
                "delete it, or pass another path."
            )
            raise ValueError(msg)

    def save(self, state: Mapping[str, Any]) -> None:
        """Replace the stored state."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        scratch.write_text(json.dumps({"search": self._key, "state": state}), encoding="utf-8")
        scratch.replace(self._path)
