"""What the package ``openai`` does for one blocking request, over urllib: the same errors for the same failures."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any


class APIConnectionError(Exception):
    """The server could not be reached, or broke off."""


class APITimeoutError(APIConnectionError):
    """The server took too long."""


class APIStatusError(Exception):
    """The server answered with an error status."""

    def __init__(self, error: urllib.error.HTTPError) -> None:
        super().__init__(str(error))
        self.status_code = error.code
        text = error.read().decode()
        self.response = SimpleNamespace(text=text, headers={k.lower(): v for k, v in error.headers.items()})


class OpenAI:
    """A client without retries of its own."""

    def __init__(self, *, base_url: str, api_key: str, timeout: float, max_retries: int) -> None:
        assert max_retries == 0
        assert api_key
        self.base_url, self._key, self._timeout = base_url, api_key, timeout
        self.completions = self._endpoint("/completions")
        self.chat = SimpleNamespace(completions=self._endpoint("/chat/completions"))

    def _endpoint(self, path: str) -> SimpleNamespace:
        def create(**request: Any) -> SimpleNamespace:
            return SimpleNamespace(http_response=SimpleNamespace(text=self._post(path, request)))

        return SimpleNamespace(with_raw_response=SimpleNamespace(create=create))

    def _post(self, path: str, request: dict[str, Any]) -> str:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        message = urllib.request.Request(self.base_url + path, json.dumps(request).encode(), headers)
        try:
            with urllib.request.urlopen(message, timeout=self._timeout) as response:
                text: str = response.read().decode()
                return text
        except urllib.error.HTTPError as error:
            raise APIStatusError(error) from error
        except TimeoutError as error:
            raise APITimeoutError from error
        except urllib.error.URLError as error:
            kind = APITimeoutError if isinstance(error.reason, TimeoutError) else APIConnectionError
            raise kind from error.reason
        except (http.client.HTTPException, OSError) as error:
            raise APIConnectionError from error
