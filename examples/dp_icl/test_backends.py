"""Backends agree: one model, asked the same by transformers, by vLLM in process and by a vLLM server.

What they said is recorded, so the comparison needs none of them. Two tests ask again, and run only when they
are named; they want an environment with vLLM and this project (see backends.py):

    python -m pytest examples/dp_icl/test_backends.py -m vllm
    python -m pytest examples/dp_icl/test_backends.py -m vllm_server
"""

from functools import cache

import numpy as np
import pytest
from backends import BACKENDS, language_model
from record import (
    RESPONSE_NEIGHBOURS,
    VOTE_NEIGHBOURS,
    RecordLogProbabilities,
    RecordResponses,
    response_inputs,
    vote_inputs,
)
from texts import LABELS, SIGNALS

from dp_icl import PrivateVoting
from dp_icl.flawed import ClassicalPrivateVoting
from pytest_snapaudit import PrivacyClaim, audit

TOLERANCE = 1e-4
"""Natural log-probabilities of the same text by two backends are at most this far apart."""

OTHERS = BACKENDS[1:]
PARTITIONS, DELTA = 3, 1e-5


@pytest.fixture(scope="module")
def recorded(privacy_auditor):
    """Log-probabilities of the labels, and headlines, as the named backend gave them."""

    @cache
    def load(backend):
        with Answers(backend) as answers:
            scores = privacy_auditor.snapshot(
                f"backend_{backend}_scores",
                answers.scores,
                VOTE_NEIGHBOURS,
                inputs={**vote_inputs(), "backend": backend},
                size=1,
            )
            headlines = privacy_auditor.snapshot(
                f"backend_{backend}_headlines",
                answers.headlines,
                RESPONSE_NEIGHBOURS,
                inputs={**response_inputs(), "backend": backend},
                size=1,
            )
        return scores, headlines

    return load


class Answers:
    """Recorders that share one model, which is built when the first of them is called."""

    def __init__(self, backend):
        self._context = language_model(backend)
        self._model = None
        self.scores, self.headlines = RecordLogProbabilities(self.model), RecordResponses(self.model)

    def model(self):
        if self._model is None:
            self._model = self._context.__enter__()
        return self._model

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._model is not None:
            self._context.__exit__(*error)


def sides(pair):
    return pair.reference.rows, pair.canary.rows


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_canary_is_repeated(recorded, backend):
    scores, headlines = recorded(backend)
    likeliest = [np.asarray(LABELS)[rows.argmax(axis=-1)].tolist() for rows in sides(scores)]
    assert likeliest == [[["Sports", "Sports", "Sports"]], [["Science", "Sports", "Sports"]]]
    assert tuple(rows[0, 0] for rows in sides(headlines)) == SIGNALS


@pytest.mark.parametrize("backend", OTHERS)
def test_texts_are_identical(recorded, backend):
    for ours, theirs in zip(sides(recorded("transformers")[1]), sides(recorded(backend)[1]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("backend", OTHERS)
def test_log_probabilities_agree(recorded, backend):
    for ours, theirs in zip(sides(recorded("transformers")[0]), sides(recorded(backend)[0]), strict=True):
        assert ours.shape == (1, PARTITIONS, len(LABELS))
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("design", "epsilon", "verdict"),
    [(PrivateVoting, 2, "CONSISTENT"), (ClassicalPrivateVoting, 16, "VIOLATION")],
)
def test_verdicts_are_equal(recorded, design, epsilon, verdict):
    mechanism = design(LABELS, PARTITIONS, epsilon, DELTA)

    def votes(scores):
        return mechanism.aggregate(np.asarray(LABELS)[scores.argmax(axis=-1)])

    results = [
        audit(mechanism, recorded(backend)[0].map(votes), PrivacyClaim(*mechanism.claim), n_trials=50_000)
        for backend in BACKENDS
    ]
    assert [result.verdict.name for result in results] == [verdict] * len(BACKENDS)
    assert len({result.epsilon_lower for result in results}) == 1


def ask_again(recorded, backend):
    rng = np.random.default_rng(0)
    scores, headlines = recorded("transformers")
    with Answers(backend) as answers:
        for dataset, rows in zip(RESPONSE_NEIGHBOURS, sides(headlines), strict=True):
            np.testing.assert_array_equal(answers.headlines(dataset, 1, rng), rows)
        for dataset, rows in zip(VOTE_NEIGHBOURS, sides(scores), strict=True):
            np.testing.assert_allclose(answers.scores(dataset, 1, rng), rows, rtol=0, atol=TOLERANCE)


@pytest.mark.vllm
def test_vllm_in_process_answers_as_recorded(recorded):
    ask_again(recorded, "vllm")


@pytest.mark.vllm_server
def test_a_vllm_server_answers_as_recorded(recorded):
    ask_again(recorded, "vllm_server")
