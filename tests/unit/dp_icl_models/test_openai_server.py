"""A model behind a server on this machine that misbehaves on demand: retries, one clear error, nothing lost.

Everything runs with a stand-in for the package ``openai``, and where that is installed with the package as well.
"""

from __future__ import annotations

import importlib.util
import json
import math
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import openai_stand_in
import pytest

from dp_icl.models import (
    JournaledLanguageModel,
    LanguageModel,
    ModelServerError,
    OpenAILanguageModel,
    Retries,
)
from dp_icl.models.openai_answers import echoed, first_token_scores
from dp_icl.models.retry import TransientError

Fault = Callable[["Handler", dict[str, Any]], None]


def tokens_of(text: str) -> list[str]:
    """Words with the space before them."""
    return [(" " if index else "") + word for index, word in enumerate(text.split(" "))]


def score_of(token: str) -> float:
    return -len(token) / 8


def good_choice(index: int, prompt: str, request: dict[str, Any]) -> dict[str, Any]:
    said = f" {prompt[::-1]}" + (f" drawn {request['seed'] % 1000}" if "seed" in request else "")
    choice: dict[str, Any] = {"index": index, "finish_reason": "stop", "text": said, "logprobs": None}
    if request.get("echo"):
        tokens = [*tokens_of(prompt), " next"]
        scores = [None, *map(score_of, tokens[1:])]
        choice |= {"text": prompt + " next", "logprobs": {"tokens": tokens, "token_logprobs": scores}}
    return choice


def good_answer(path: str, request: dict[str, Any]) -> dict[str, Any]:
    if path.endswith("/chat/completions"):
        message = {"role": "assistant", "content": f"re: {request['messages'][0]['content']}"}
        likeliest = [{"token": t, "logprob": s} for t, s in ((" Sp", -0.5), ("S", -1.0), ("World", -2.0))]
        logprobs = {"content": [{"token": " Sp", "logprob": -0.5, "top_logprobs": likeliest}]}
        return {"choices": [{"index": 0, "message": message, "logprobs": logprobs}]}
    choices = [good_choice(index, prompt, request) for index, prompt in enumerate(request["prompt"])]
    return {"choices": choices[::-1]}


class Handler(BaseHTTPRequestHandler):
    """Takes the next fault from the list of its server, and answers well when there is none."""

    server: Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, request))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault is None:
            self.reply(200, json.dumps(good_answer(self.path, request)))
        else:
            fault(self, request)

    def reply(self, status: int, text: str, headers: dict[str, str] | None = None, promised: int = 0) -> None:
        """Send ``text`` as JSON; with ``promised``, say that this many more bytes follow, and break off."""
        body = text.encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) + promised))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Serves on a free port of the loopback interface."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[Fault | None] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


def status(code: int, headers: dict[str, str] | None = None) -> Fault:
    return lambda handler, _: handler.reply(code, '{"error": {"message": "out of order"}}', headers)


def break_off(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply(200, '{"choices": [{"te', promised=50)


def truncated(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply(200, '{"choices": [{"te')


def nested(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply(200, "[" * 100_000)


def hang(handler: Handler, _: dict[str, Any]) -> None:
    handler.server.released.wait(30)
    handler.close_connection = True


def body(text: object) -> Fault:
    return lambda handler, _: handler.reply(200, json.dumps(text))


def edited(edit: Callable[[list[dict[str, Any]]], object]) -> Fault:
    """A good answer after ``edit`` changed its choices."""

    def fault(handler: Handler, request: dict[str, Any]) -> None:
        answer = good_answer(handler.path, request)
        edit(answer["choices"])
        handler.reply(200, json.dumps(answer))

    return fault


one_too_few = edited(lambda choices: choices.pop())
one_too_many = edited(lambda choices: choices.append(choices[0]))
twice_the_same = edited(lambda choices: choices[0].update(index=choices[-1]["index"]))
empty_text = edited(lambda choices: choices[0].update(text="  "))
no_text = edited(lambda choices: choices[0].pop("text"))
no_logprobs = edited(lambda choices: choices[0].update(logprobs=None))
odd_logprobs = edited(lambda choices: choices[0].update(logprobs=["?"]))
huge_score = edited(lambda choices: choices[0]["logprobs"]["token_logprobs"].__setitem__(-2, -(10**400)))
short_logprobs = edited(lambda choices: choices[0]["logprobs"]["tokens"].pop())
no_echo = edited(lambda choices: choices[0].update(text=" next"))
null_score = edited(lambda choices: choices[0]["logprobs"]["token_logprobs"].__setitem__(-2, None))


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


CLIENTS = ["stand-in", *(["openai"] if importlib.util.find_spec("openai") else [])]


@pytest.fixture(params=CLIENTS, autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "openai", openai_stand_in)


@pytest.fixture
def pauses() -> list[float]:
    """What was slept, in place of sleeping."""
    return []


@pytest.fixture
def build(server: Server, pauses: list[float]) -> Callable[..., OpenAILanguageModel]:
    def model(**options: Any) -> OpenAILanguageModel:
        retries = Retries(attempts=4, first_pause=0.5, sleep=pauses.append, uniform=lambda: 1.0)
        return OpenAILanguageModel(
            "tiny", **{"base_url": server.url, "retries": retries, "server": "test", **options}
        )

    return model


def test_completions_come_in_the_order_of_the_prompts_in_batches(server, build) -> None:
    model = build(batch_size=2, max_new_tokens=7, stop="\n")
    assert model.complete(["abc", "de", "f"]) == ["cba", "ed", "f"]
    assert [request["prompt"] for _, request in server.requests] == [["abc", "de"], ["f"]]
    path, request = server.requests[0]
    assert path == "/v1/completions"
    assert {key: request[key] for key in ("model", "temperature", "max_tokens", "stop")} == {
        "model": "tiny",
        "temperature": 0,
        "max_tokens": 7,
        "stop": ["\n"],
    }
    assert "seed" not in request
    assert model.complete([]) == []
    assert isinstance(model, LanguageModel)


def test_draws_ask_for_one_prompt_each_with_a_seed_of_its_own(server, build) -> None:
    model = build()
    first = model.complete(["abc", "abc", "de"], temperature=0.7, seed=[1, 2, 1])
    seeds = [request["seed"] for _, request in server.requests]
    assert len(set(seeds)) == 3
    assert all(request["temperature"] == 0.7 for _, request in server.requests)
    assert first == model.complete(["abc", "abc", "de"], temperature=0.7, seed=[1, 2, 1])
    assert first[0] != first[1]


def test_labels_and_continuations_are_scored_by_their_own_tokens(server, build) -> None:
    model = build(batch_size=2)
    labels = [" Sports", " World news", " Ωμέγα"]
    prompts = ["news about", "Größe 🙂 of"]
    scores = model.label_log_probabilities(prompts, labels)
    expected = [sum(score_of(token) for token in tokens_of(label)[1:]) for label in labels]
    np.testing.assert_allclose(scores, [expected, expected])
    pairs = [prompt for prompt in prompts for _ in labels]
    single = model.continuation_log_probabilities(pairs, labels * 2)
    np.testing.assert_array_equal(single, scores.ravel())
    assert model.label_log_probabilities([], labels).shape == (0, 3)
    assert model.label_log_probabilities(prompts, []).shape == (2, 0)
    assert model.continuation_log_probabilities([], []).shape == (0,)


def test_a_continuation_that_shares_a_token_with_its_prompt_is_refused_at_once(server, build, pauses) -> None:
    model = build()
    for end in ("ly", "ly so"):
        with pytest.raises(ModelServerError, match=r"'ly.*' shares a token with the end of its prompt"):
            model.continuation_log_probabilities(["quick"], [end])
    assert pauses == []


def test_chat_asks_prompt_by_prompt_and_scores_labels_by_first_tokens(server, build) -> None:
    model = build(chat=True)
    assert model.complete(["a", "b"]) == ["re: a", "re: b"]
    assert server.requests[0][0] == "/v1/chat/completions"
    assert server.requests[0][1]["messages"] == [{"role": "user", "content": "a"}]
    scores = model.label_log_probabilities(["a"], [" Sports", " Science", " World", " Business"])
    np.testing.assert_allclose(scores, [[-0.5, -math.inf, -2.0, -math.inf]])
    assert model.provenance["endpoint"] == "chat"
    with pytest.raises(ModelServerError, match="no label begins with one of the likeliest first tokens"):
        model.label_log_probabilities(["a"], [" Economy"])
    with pytest.raises(ValueError, match="the chat endpoint cannot score a given text"):
        model.continuation_log_probabilities(["a"], ["b"])


COMPLETION_FAULTS = {
    "429": (status(429), "status 429"),
    "500": (status(500), "status 500"),
    "503": (status(503), "status 503: .*out of order"),
    "broken off": (break_off, "the connection failed"),
    "truncated": (truncated, "the answer is not JSON"),
    "nested": (nested, "the answer is not JSON"),
    "a list": (body([1]), "the answer has no choices"),
    "null": (body(None), "the answer has no choices"),
    "no choices": (body({"object": "error"}), "the answer has no choices"),
    "odd choices": (body({"choices": ["a", "b"]}), "the answer has no choices"),
    "one too few": (one_too_few, "2 choices were expected, got 1"),
    "one too many": (one_too_many, "2 choices were expected, got 3"),
    "twice the same": (twice_the_same, "2 choices were expected"),
    "empty": (empty_text, "a choice is empty; pass allow_empty=True"),
    "no text": (no_text, "a choice has no text"),
}
SCORE_FAULTS = {
    "no logprobs": (no_logprobs, "a choice has no logprobs; the server must support echo"),
    "odd logprobs": (odd_logprobs, "not of the expected form"),
    "huge": (huge_score, "not of the expected form"),
    "short logprobs": (short_logprobs, "a choice has no logprobs"),
    "no echo": (no_echo, "does not begin with the text that was sent"),
    "null": (null_score, "a token has no log-probability"),
}


@pytest.mark.parametrize("name", COMPLETION_FAULTS)
def test_a_failure_that_passes_is_retried_with_growing_pauses(server, build, pauses, name: str) -> None:
    fault, _ = COMPLETION_FAULTS[name]
    server.faults = [fault] * 3
    assert build().complete(["abc", "de"]) == ["cba", "ed"]
    assert pauses == [0.5, 1.0, 2.0]
    assert len(server.requests) == 4


@pytest.mark.parametrize("name", COMPLETION_FAULTS)
def test_a_failure_that_stays_is_one_error_after_the_last_attempt(server, build, pauses, name: str) -> None:
    fault, message = COMPLETION_FAULTS[name]
    server.faults = [fault] * 9
    with pytest.raises(ModelServerError, match=rf"tiny at test: {message}.*\(4 attempts\)"):
        build().complete(["abc", "de"])
    assert len(server.requests) == 4


@pytest.mark.parametrize("name", SCORE_FAULTS)
def test_scores_that_cannot_be_read_are_retried_and_then_an_error(server, build, name: str) -> None:
    fault, message = SCORE_FAULTS[name]
    model = build()
    server.faults = [fault] * 3
    assert model.continuation_log_probabilities(["a b"], [" c"])[0] == score_of(" c")
    server.faults = [fault] * 4
    with pytest.raises(ModelServerError, match=message):
        model.label_log_probabilities(["a b"], [" c"])


def test_chat_without_logprobs_is_an_error(server, build) -> None:
    server.faults = [edited(lambda choices: choices[0].update(logprobs=None))] * 4
    with pytest.raises(ModelServerError, match="must support logprobs with top_logprobs"):
        build(chat=True).label_log_probabilities(["a"], [" b"])


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_repeated(server, build, pauses, code: int) -> None:
    server.faults = [status(code)]
    with pytest.raises(ModelServerError, match=f"status {code}: .*out of order"):
        build().complete(["abc"])
    assert len(server.requests) == 1
    assert pauses == []


def test_retry_after_in_seconds_or_as_a_date_is_waited_for(server, build, pauses) -> None:
    date = formatdate(time.time() + 40, usegmt=True)
    server.faults = [status(429, {"Retry-After": after}) for after in ("7", date, "soon")]
    build().complete(["abc"])
    assert pauses[0] == 7
    assert 30 <= pauses[1] <= 40
    assert pauses[2] == 2.0


def test_a_server_that_wants_too_long_a_pause_is_an_error_at_once(server, build, pauses) -> None:
    server.faults = [status(429, {"Retry-After": "3600"})]
    with pytest.raises(ModelServerError, match="asks to wait 3600 s; at most 60 s are waited"):
        build().complete(["abc"])
    assert pauses == []


def test_a_refused_connection_and_a_time_out_are_retried(server, build, pauses) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(ModelServerError, match=r"the connection failed: .*\(4 attempts\)"):
            build(base_url=nowhere).complete(["abc"])
    assert len(pauses) == 3
    server.faults = [hang]
    assert build(timeout=0.2).complete(["abc"]) == ["cba"]
    server.faults = [hang] * 4
    with pytest.raises(ModelServerError, match=r"no answer within 0\.05 s \(4 attempts\)"):
        build(timeout=0.05).complete(["abc"])


def test_an_empty_answer_may_be_allowed(server, build) -> None:
    server.faults = [empty_text]
    assert build(allow_empty=True).complete(["abc", "de"]) == ["cba", ""]


def test_what_was_answered_before_the_error_is_in_the_journal(server, build, tmp_path: Path) -> None:
    prompts = ["ab", "cd", "ef", "gh", "ij"]
    model = JournaledLanguageModel(build(batch_size=1), tmp_path / "calls.journal.sqlite", chunk=5)
    server.faults = [None, None, None, *[status(500)] * 4]
    with pytest.raises(ModelServerError, match=r"3 answers of this call came before it") as caught:
        model.complete(prompts)
    assert caught.value.answered == ["ba", "dc", "fe"]
    assert model.calls.made == 3
    server.requests.clear()
    again = JournaledLanguageModel(build(batch_size=1), tmp_path / "calls.journal.sqlite", chunk=5)
    assert again.complete(prompts) == [prompt[::-1] for prompt in prompts]
    assert [request["prompt"] for _, request in server.requests] == [["gh"], ["ij"]]
    assert (again.calls.made, again.calls.resumed) == (2, 3)


def test_asking_again_after_an_error_finds_what_was_paid_for(server, build, tmp_path: Path) -> None:
    model = JournaledLanguageModel(build(), tmp_path / "calls.journal.sqlite", chunk=1)
    server.faults = [None, *[status(500)] * 4]
    with pytest.raises(ModelServerError):
        model.complete(["ab", "cd"])
    server.requests.clear()
    assert model.complete(["ab", "cd"]) == ["ba", "dc"]
    assert [request["prompt"] for _, request in server.requests] == [["cd"]]


def test_scores_of_whole_prompts_survive_an_error(server, build, tmp_path: Path) -> None:
    model = JournaledLanguageModel(build(), tmp_path / "calls.journal.sqlite")
    server.faults = [None, *[no_logprobs] * 4]
    with pytest.raises(ModelServerError, match="1 answers of this call"):
        model.label_log_probabilities(["a b", "c d"], [" x", " yy"])
    server.requests.clear()
    assert model.label_log_probabilities(["a b", "c d"], [" x", " yy"]).shape == (2, 2)
    assert [request["prompt"][0] for _, request in server.requests] == ["c d"]


def test_the_key_and_the_password_are_in_no_provenance_and_no_message(server, build) -> None:
    url = server.url.replace("http://", "http://ann:hunter2@")
    model = build(base_url=url, api_key="sk-very-secret", server=None)
    server.faults = [status(400)]
    with pytest.raises(ModelServerError) as caught:
        model.complete(["abc"])
    told = str(caught.value) + repr(model) + json.dumps(dict(model.provenance))
    assert "secret" not in told
    assert "hunter2" not in told
    assert model.provenance["server"] == f"127.0.0.1:{server.server_port}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, "model must be a text of at least one character, got ''"),
        ({"server": ""}, "server must be a text of at least one character"),
        ({"timeout": 0}, "timeout must be a positive number of seconds, got 0"),
        ({"batch_size": 0}, "batch_size must be a positive integer, got 0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be a positive integer"),
        ({"stop": ""}, "stop must be None or a text"),
    ],
)
def test_bad_options_are_refused_before_anything_is_sent(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenAILanguageModel(**{"model": "tiny", "base_url": "http://127.0.0.1:9/v1", **options})


@pytest.mark.parametrize("logprob", [math.nan, math.inf, 5, 1000])
def test_log_probabilities_above_zero_are_failed_attempts(logprob: float) -> None:
    likeliest = [{"token": "Yes", "logprob": logprob}]
    body = {"choices": [{"logprobs": {"content": [{"top_logprobs": likeliest}]}}]}
    with pytest.raises(TransientError, match="a log-probability must be at most 0, got "):
        first_token_scores(body, ["Yes", "No"])


@pytest.mark.parametrize("generated", [[], [" more"]])
def test_an_echo_keeps_the_tokens_of_the_text_whether_or_not_one_follows(generated: list[str]) -> None:
    tokens = ["one", " two", *generated]
    logprobs = {"tokens": tokens, "token_logprobs": [None, *[-1.0] * (len(tokens) - 1)]}
    body = {"choices": [{"text": "".join(tokens), "logprobs": logprobs}]}
    (found,) = echoed(body, ["one two"])
    assert found.tokens == ("one", " two")
    assert found.log_probabilities == (None, -1.0)
