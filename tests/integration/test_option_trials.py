"""``--snapaudit-trials`` and its ini twin."""

import re

SUITE = """
@privacy_audit(epsilon=1.0)
def test_default(privacy_auditor):
    print("default", privacy_auditor.check(LaplaceSum(1.0), PAIR).n_trials)

@privacy_audit(epsilon=1.0, n_trials=700)
def test_marker(privacy_auditor):
    print("marker", privacy_auditor.check(LaplaceSum(1.0), PAIR).n_trials)

@privacy_audit(epsilon=1.0, n_trials=700)
def test_argument(privacy_auditor):
    print("argument", privacy_auditor.check(LaplaceSum(1.0), PAIR, n_trials=900).n_trials)

@privacy_audit(epsilon=1.0)
def test_callable(privacy_auditor):
    noisy = from_callable(lambda dataset: sum(dataset) + np.random.laplace())
    print("callable", privacy_auditor.check(noisy, PAIR).n_trials)
"""


def _trials(run):
    return {word: int(count) for word, count in re.findall(r"(\w+) (\d+)$", run.result.stdout.str(), re.M)}


def test_without_it_arguments_win_over_markers_over_the_default(audits):
    assert _trials(audits(SUITE, "-s", trials=None)) == {
        "default": 400_000,
        "marker": 700,
        "argument": 900,
        "callable": 20_000,
    }


def test_the_command_line_wins_over_everything(audits):
    run = audits(SUITE, "-s", "--snapaudit-trials=1_500", trials=None)
    assert _trials(run) == dict.fromkeys(("default", "marker", "argument", "callable"), 1_500)
    run.result.stdout.fnmatch_lines(["snapaudit: seed 0, 99.9% confidence, 1,500 trials per side"])


def test_the_ini_twin_only_replaces_the_default(audits, pytester):
    pytester.makeini("[pytest]\nsnapaudit_trials = 600\n")
    assert _trials(audits(SUITE, "-s", trials=None)) == {
        "default": 600,
        "marker": 700,
        "argument": 900,
        "callable": 600,
    }


def test_other_values_are_refused(audits, pytester):
    refused = audits(SUITE, "--snapaudit-trials=many", trials=None)
    refused.result.stderr.fnmatch_lines(
        ["*--snapaudit-trials: the number of trials per side must be an integer of at least 100, got 'many'."]
    )
    pytester.makeini("[pytest]\nsnapaudit_trials = 99\n")
    audits(SUITE, trials=None).result.stderr.fnmatch_lines(
        [
            "*ini key snapaudit_trials: the number of trials per side must be an integer of at least 100, got '99'."
        ]
    )
