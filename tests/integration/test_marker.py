"""Where the marker can be put, how markers add up, and what they refuse."""

import re

import pytest


def _resolved(run):
    """What each test printed: the claim, the trials, the error probability's share."""
    return dict(re.findall(r"(\w+): (\(.*)$", run.result.stdout.str(), re.M))


def test_every_place_gives_the_claim(audits):
    run = audits(
        """
        from hypothesis import given, settings, strategies as st

        def claim_of(auditor, label):
            print(f"{label}: {auditor.check(LaplaceSum(1.0), PAIR).claim}")

        @privacy_audit(epsilon=2.0, delta=1e-5)
        def test_function(privacy_auditor):
            claim_of(privacy_auditor, "function")

        @privacy_audit(epsilon=3.0)
        class TestClass:
            def test_inherits(self, privacy_auditor):
                claim_of(privacy_auditor, "inherits")

            @privacy_audit(delta=1e-6)
            def test_adds(self, privacy_auditor):
                claim_of(privacy_auditor, "adds")

            @privacy_audit(epsilon=4.0)
            def test_overrides(self, privacy_auditor):
                claim_of(privacy_auditor, "overrides")

        @privacy_audit(epsilon=3.0, delta=1e-7)
        @pytest.mark.parametrize(
            "label", [pytest.param("parameter", marks=privacy_audit(epsilon=5.0)), "no_parameter"]
        )
        def test_parameter(privacy_auditor, label):
            claim_of(privacy_auditor, label)

        @privacy_audit(epsilon=6.0)
        @settings(max_examples=1, database=None)
        @given(st.just(0))
        def test_above_given(privacy_auditor, unused):
            claim_of(privacy_auditor, "above")

        @settings(max_examples=1, database=None)
        @given(st.just(0))
        @privacy_audit(epsilon=7.0)
        def test_below_given(privacy_auditor, unused):
            claim_of(privacy_auditor, "below")

        @pytest.mark.privacy_audit(epsilon=8)
        def test_by_hand(privacy_auditor):
            claim_of(privacy_auditor, "by_hand")

        @privacy_audit(epsilon=9.0)
        @privacy_audit(epsilon=2.5)
        def test_stacked(privacy_auditor):
            claim_of(privacy_auditor, "stacked")
        """,
        "-s",
    )
    run.result.assert_outcomes(passed=10, warnings=3)
    assert _resolved(run) == {
        "function": "(2, 1e-05)",
        "inherits": "(3, 0)",
        "adds": "(3, 1e-06)",
        "overrides": "(4, 0)",
        "parameter": "(5, 1e-07)",
        "no_parameter": "(3, 1e-07)",
        "above": "(6, 0)",
        "below": "(7, 0)",
        "by_hand": "(8, 0)",
        "stacked": "(2.5, 0)",
    }


def test_a_module_mark_reaches_every_test(audits):
    run = audits(
        """
        pytestmark = privacy_audit(epsilon=2.0, n_trials=300)

        def test_it(privacy_auditor):
            result = privacy_auditor.check(LaplaceSum(1.0), PAIR)
            print(f"it: {result.claim} {result.n_trials}")
        """,
        "-s",
        trials=None,
    )
    assert _resolved(run) == {"it": "(2, 0) 300"}


def test_check_wins_over_markers_and_markers_over_the_mechanism(audits):
    run = audits(
        """
        @dataclass(frozen=True)
        class Claiming(LaplaceSum):
            claim: object = PrivacyClaim(3.0, 1e-3)

        def test_mechanism(privacy_auditor):
            print(f"mechanism: {privacy_auditor.check(Claiming(1.0), PAIR).claim}")

        def test_pair(privacy_auditor):
            print(f"pair: {privacy_auditor.check(Claiming(1.0, claim=(2.0, 1e-4)), PAIR).claim}")

        @privacy_audit(epsilon=4.0)
        def test_marker(privacy_auditor):
            print(f"marker: {privacy_auditor.check(Claiming(1.0), PAIR).claim}")

        @privacy_audit(epsilon=4.0, delta=1e-2)
        def test_argument(privacy_auditor):
            print(f"argument: {privacy_auditor.check(Claiming(1.0), PAIR, delta=0).claim}")

        def test_sampler(privacy_auditor):
            noisy = from_sampler(lambda d, n, rng: sum(d) + rng.laplace(size=n), claim=PrivacyClaim(1.5))
            print(f"sampler: {privacy_auditor.check(noisy, PAIR).claim}")
        """,
        "-s",
    )
    run.result.assert_outcomes(passed=5)
    assert _resolved(run) == {
        "mechanism": "(3, 0.001)",
        "pair": "(2, 0.0001)",
        "marker": "(4, 0.001)",
        "argument": "(4, 0)",
        "sampler": "(1.5, 0)",
    }


def test_no_claim_at_all_says_where_to_put_one(audits):
    run = audits(
        """
        @privacy_audit()
        def test_it(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), PAIR)

        def test_other(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0, claim=1.0) if False else Odd(1.0), PAIR)

        @dataclass(frozen=True)
        class Odd(LaplaceSum):
            claim: object = "strong"
        """
    )
    run.result.assert_outcomes(failed=2)
    run.result.stdout.fnmatch_lines(
        [
            "*InvalidClaim: no privacy claim to test for LaplaceSum(epsilon=1.0, understated=1.0): mark the test "
            "@privacy_audit(epsilon=1.0, delta=1e-5), pass check(..., epsilon=1.0, delta=1e-5), or give the "
            "mechanism claim = PrivacyClaim(1.0, 1e-5).",
            "*InvalidClaim: Odd(*: claim must be a PrivacyClaim or an (epsilon, delta) pair, got 'strong' of type str.",
        ]
    )


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (
            "privacy_audit(epsilonn=1)",
            "TypeError: privacy_audit: unknown keyword 'epsilonn' with value 1. Accepted: epsilon, delta, "
            "confidence, views, n_trials, n_snapshots, max_checks, detects. Did you mean 'epsilon'?",
        ),
        (
            "privacy_audit(1.0)",
            "TypeError: *takes keywords only, got 1.0: write @privacy_audit(epsilon=1.0, *",
        ),
        ("privacy_audit(epsilon=-1)", "InvalidClaim: epsilon must be a finite number above 0, got -1."),
        (
            "privacy_audit(delta='x')",
            "InvalidClaim: delta must be a number in [[]0, 1), got 'x' of type str.",
        ),
        (
            "privacy_audit(max_checks=0)",
            "ValueError: privacy_audit: max_checks must be a positive integer, got 0.",
        ),
        ("privacy_audit(views='white-box')", "TypeError: privacy_audit: views must be a collection of *"),
    ],
)
def test_markers_written_by_hand_are_checked_when_the_test_runs(audits, mark, message):
    run = audits(
        f"""
        @pytest.mark.xfail(strict=True, raises=PrivacyViolation)
        @pytest.mark.{mark}
        def test_it(privacy_auditor):
            raise AssertionError("not reached")
        """
    )
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines([message])
    assert "Traceback" not in run.result.stdout.str()


def test_a_mark_without_arguments_inherits_everything(audits):
    run = audits(
        """
        @pytest.mark.privacy_audit
        def test_it(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), PAIR, epsilon=1.0)
        """,
        "--strict-markers",
    )
    run.result.assert_outcomes(passed=1)


def test_a_bare_decorator_is_an_error_with_the_right_spelling(audits):
    run = audits("@privacy_audit\ndef test_it(privacy_auditor): pass")
    run.result.assert_outcomes(errors=1)
    run.result.stdout.fnmatch_lines(
        [
            "*InvalidClaim: @privacy_audit needs parentheses: write @privacy_audit(epsilon=1.0, delta=1e-5) "
            "(or @privacy_audit()) above test_it."
        ]
    )


def test_the_marker_is_listed(audits):
    run = audits("", "--markers")
    run.result.stdout.fnmatch_lines(["@pytest.mark.privacy_audit(*, epsilon=None, delta=None, *"])


def test_detects_tells_a_weak_pair_from_a_weak_audit(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0, detects=2.0)
        def test_met(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), PAIR)

        @privacy_audit(epsilon=1.0, detects=2.0)
        def test_weak_pair(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), ([0.0], [0.4]))

        @privacy_audit(epsilon=1.0, detects=2.0)
        def test_hopeless_pair(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), ([0.0], [0.01]))

        @privacy_audit(epsilon=4.0, detects=2.0)
        def test_weak_audit(privacy_auditor):
            privacy_auditor.check(LaplaceSum(4.0), PAIR)

        @privacy_audit(epsilon=1.0, detects=2.0)
        def test_violated_anyway(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0, understated=2.0), PAIR)
        """
    )
    run.result.assert_outcomes(passed=1, failed=4)
    run.result.stdout.fnmatch_lines(
        [
            "*InconclusiveAudit: pair too weak: detects=2 is within reach of the audit (up to epsilon *), but on "
            "these neighbours it certifies only epsilon >= 0.* of 1 claimed, so it would catch a mechanism * times "
            "worse",
            "*choose neighbours further apart*",
            "*InconclusiveAudit: pair too weak: *, but on these neighbours it certifies nothing",
            "*InconclusiveAudit: audit too weak: detects=2 asks for epsilon 8, but 2,000 trials per side can "
            "certify at most *",
            "*raise n_trials (or --snapaudit-trials)*",
            "*PrivacyViolation: epsilon >= * > 1 claimed*",
        ]
    )
