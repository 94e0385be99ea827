"""``--snapaudit-disable`` and its ini twin."""

import pytest

SUITE = """
@privacy_audit(epsilon=1.0)
def test_marked(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0, understated=3.0), PAIR)

def test_uses_the_fixture(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0, understated=3.0), PAIR, epsilon=1.0)

def test_asks_for_it_late(request):
    request.getfixturevalue("privacy_auditor").check(LaplaceSum(1.0, understated=3.0), PAIR, epsilon=1.0)

def test_other():
    pass
"""


@pytest.mark.parametrize("spelling", ["option", "ini"])
def test_audits_are_skipped_with_the_reason_and_other_tests_run(audits, pytester, spelling):
    if spelling == "ini":
        pytester.makeini("[pytest]\nsnapaudit_disable = true\n")
    run = audits(SUITE, "-rs", *["--snapaudit-disable"] * (spelling == "option"))
    run.result.assert_outcomes(skipped=3, passed=1)
    assert run.rows == ()
    run.result.stdout.fnmatch_lines(
        [
            "snapaudit: *, disabled",
            *["SKIPPED [[]1] *: privacy audits are disabled by --snapaudit-disable*"] * 3,
        ]
    )


def test_without_it_they_fail(audits):
    audits(SUITE).result.assert_outcomes(failed=3, passed=1)
