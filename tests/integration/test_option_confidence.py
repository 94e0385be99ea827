"""``--snapaudit-confidence`` and its ini twin."""

import re

SUITE = """
@privacy_audit(epsilon=1.0)
def test_default(privacy_auditor):
    print("default", privacy_auditor.check(LaplaceSum(1.0), PAIR).confidence)

@privacy_audit(epsilon=1.0, confidence=0.9)
def test_marker(privacy_auditor):
    print("marker", privacy_auditor.check(LaplaceSum(1.0), PAIR).confidence)

@privacy_audit(epsilon=1.0, confidence=0.9, max_checks=4)
def test_shared(privacy_auditor):
    print("shared", privacy_auditor.check(LaplaceSum(1.0), PAIR).confidence)
"""


def _confidences(run):
    found = re.findall(r"(\w+) (0\.\d+)$", run.result.stdout.str(), re.M)
    return {word: round(float(value), 12) for word, value in found}


def test_the_marker_wins_over_the_default(audits):
    assert _confidences(audits(SUITE, "-s")) == {"default": 0.999, "marker": 0.9, "shared": 0.975}


def test_the_command_line_wins_over_the_marker(audits):
    run = audits(SUITE, "-s", "--snapaudit-confidence=0.96")
    run.result.stdout.fnmatch_lines(["snapaudit: seed 0, 96% confidence, *", "*(seed 0, 96% confidence)*"])
    assert _confidences(run) == {"default": 0.96, "marker": 0.96, "shared": 0.99}


def test_the_ini_twin_only_replaces_the_default(audits, pytester):
    pytester.makeini("[pytest]\nsnapaudit_confidence = 0.98\n")
    assert _confidences(audits(SUITE, "-s")) == {"default": 0.98, "marker": 0.9, "shared": 0.975}


def test_other_values_are_refused(audits, pytester):
    refused = audits(SUITE, "--snapaudit-confidence=1")
    refused.result.stderr.fnmatch_lines(
        ["*--snapaudit-confidence: the confidence must lie strictly between 0 and 1, got '1'."]
    )
    pytester.makeini("[pytest]\nsnapaudit_confidence = high\n")
    audits(SUITE).result.stderr.fnmatch_lines(
        ["*ini key snapaudit_confidence: the confidence must lie strictly between 0 and 1, got 'high'."]
    )
