"""``check`` and ``measure``: outcomes, texts, shares of the error probability, and bad input."""

import re

import pytest

BROKEN = """
@privacy_audit(epsilon=1.0, delta=1e-5)
def test_it(privacy_auditor):
    privacy_auditor.check(LaplaceSum(1.0, understated=2.0), PAIR)
"""


def test_the_failure_leads_with_numbers_and_ends_with_the_repair(audits):
    run = audits(BROKEN, "--snapaudit-seed=3", "--snapaudit-confidence=0.99")
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(
        [
            ">       privacy_auditor.check(LaplaceSum(1.0, understated=2.0), PAIR)",
            "E *PrivacyViolation: epsilon >= 1.* > 1 claimed (delta=1e-05, 99% confidence)",
            "E *LaplaceSum(epsilon=1.0, understated=2.0), black-box, *, *000 trials per side",
            "E *attack: *",
            "E *clean outputs are 1 apart (l2)*",
            "E *reproduce: pytest test_it.py::test_it --snapaudit-seed=3 --snapaudit-trials=2000 "
            "--snapaudit-confidence=0.99",
            "FAILED test_it.py::test_it - PrivacyViolation: epsilon >= *",
        ]
    )
    assert "auditor.py" not in run.result.stdout.str()


def test_the_printed_command_reproduces_the_failure_to_the_digit(audits):
    first = audits(BROKEN, "--snapaudit-seed=random")
    command = re.search(r"reproduce: pytest (.*)", first.result.stdout.str()).group(1)
    again = audits(None, *command.split(), trials=None)
    assert [row.epsilon_lower for row in again.rows] == [row.epsilon_lower for row in first.rows]
    assert again.rows[0].attack == first.rows[0].attack


def test_an_expected_violation_is_strict_and_marked_in_the_table(audits):
    expected = """
    @pytest.mark.xfail(strict=True, raises=PrivacyViolation)
    @privacy_audit(epsilon=1.0)
    def test_it(privacy_auditor):
        privacy_auditor.check(LaplaceSum(1.0, understated={factor}), PAIR)
    """
    run = audits(expected.format(factor=3.0))
    run.result.assert_outcomes(xfailed=1)
    run.result.stdout.fnmatch_lines(["VIOLATION (expected) *"])
    audits(expected.format(factor=1.0)).result.assert_outcomes(failed=1)


def test_more_checks_than_declared_are_an_error_that_names_the_repair(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0)
        def test_one(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), PAIR)
            privacy_auditor.check(LaplaceSum(1.0), PAIR)
            privacy_auditor.check(LaplaceSum(0.9), PAIR)

        @privacy_audit(epsilon=1.0, max_checks=2)
        def test_two(privacy_auditor):
            for epsilon in (1.0, 0.9, 1.0, 0.9):
                result = privacy_auditor.check(LaplaceSum(epsilon), PAIR)
                assert result.confidence == pytest.approx(0.9995, abs=1e-12)
        """
    )
    run.result.assert_outcomes(failed=1, passed=1)
    run.result.stdout.fnmatch_lines(
        [
            "*BudgetExceeded: this test checks 2 different configurations, but its error probability is shared by "
            "max_checks=1. Declare them: @privacy_audit(max_checks=2). *"
        ]
    )
    assert len(run.rows) == 3


def test_the_same_configuration_has_the_same_result_and_is_audited_once(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0)
        def test_it(privacy_auditor):
            data = ([0.0], np.array([1.0]))
            first = privacy_auditor.check(LaplaceSum(1.0), data)
            assert privacy_auditor.check(LaplaceSum(1.0), ([0.0], np.array([1.0]))) is first
            assert privacy_auditor.measure(LaplaceSum(1.0), data) == first
        """
    )
    run.result.assert_outcomes(passed=1)


def test_objects_that_cannot_be_compared_by_value_are_audited_every_time(audits):
    run = audits(
        """
        class Mutable:
            def __init__(self):
                self.scale = 1.0
            def clean(self, dataset, rng):
                return np.asarray(float(sum(dataset)))
            def privatize(self, clean, rng):
                return clean + rng.laplace(0, self.scale, clean.shape)
            deterministic = True

        @privacy_audit(epsilon=1.0, max_checks=2)
        def test_it(privacy_auditor):
            mechanism = Mutable()
            privacy_auditor.check(mechanism, PAIR)
            mechanism.scale = 0.3
            with pytest.raises(PrivacyViolation):
                privacy_auditor.check(mechanism, PAIR)
        """
    )
    run.result.assert_outcomes(passed=1)


def test_replaced_methods_and_undeclared_attributes_make_another_configuration(audits):
    run = audits(
        """
        class Tuned(LaplaceSum):
            pass

        @privacy_audit(epsilon=1.0, max_checks=2)
        def test_methods(privacy_auditor, monkeypatch):
            privacy_auditor.check(LaplaceSum(1.0), PAIR)
            monkeypatch.setattr(LaplaceSum, "privatize", lambda self, rows, rng: rows + rng.laplace(size=len(rows)) / 3)
            with pytest.raises(PrivacyViolation):
                privacy_auditor.check(LaplaceSum(1.0), PAIR)

        @privacy_audit(epsilon=1.0, max_checks=2)
        def test_attributes(privacy_auditor):
            tuned = Tuned(1.0)
            first = privacy_auditor.check(tuned, PAIR)
            object.__setattr__(tuned, "factor", 0.3)
            assert privacy_auditor.check(tuned, PAIR) is not first
        """
    )
    run.result.assert_outcomes(passed=2)


def test_an_audit_that_ends_without_a_verdict_is_not_charged(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0)
        def test_it(privacy_auditor):
            with pytest.raises(VacuousAudit):
                privacy_auditor.check(LaplaceSum(1.0), ([1.0], [1.0]))
            assert privacy_auditor.check(LaplaceSum(1.0), PAIR).confidence == pytest.approx(0.999)
        """
    )
    run.result.assert_outcomes(passed=1)


def test_measure_never_fails_and_shares_nothing(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0)
        def test_it(privacy_auditor):
            assert privacy_auditor.measure(LaplaceSum(1.0, understated=3.0), PAIR).violated
            assert privacy_auditor.measure(LaplaceSum(20.0), PAIR, epsilon=20.0).reason
            assert privacy_auditor.check(LaplaceSum(1.0), PAIR).confidence == pytest.approx(0.999)
        """,
        "-W",
        "error",
    )
    run.result.assert_outcomes(passed=1)
    assert sorted(row.verdict for row in run.rows) == ["CONSISTENT", "MEASURED", "MEASURED"]


def test_arguments_reach_the_engine(audits):
    run = audits(
        """
        from concurrent.futures import ThreadPoolExecutor

        @privacy_audit(epsilon=1.0, views=["white-box"])
        def test_marker(privacy_auditor):
            @dataclass(frozen=True)
            class Both(LaplaceSum):
                claimed_views: object = frozenset({"white-box", "black-box"})
            assert privacy_auditor.check(Both(1.0), PAIR).view == "white-box"
            assert privacy_auditor.measure(Both(1.0), PAIR, views=["black-box"]).view == "black-box"

        def test_arguments(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), PAIR, epsilon=1.0, correction="clopper-pearson")
            with ThreadPoolExecutor(2) as executor:
                result = privacy_auditor.measure(
                    LaplaceSum(1.0), PAIR, epsilon=1.0, scope="noise", correction="clopper-pearson",
                    estimator="dp", name="the sum", attacks={"half": lambda rows: rows[:, 0] / 2},
                    side_channels=("low-bit",), n_snapshots=150, executor=executor,
                )
            assert (result.scope, result.correction, result.name) == ("noise", "clopper-pearson", "the sum")
            assert "lowest set bit" in result.attack

        @privacy_audit(epsilon=1.0, n_snapshots=300)
        def test_snapshots(privacy_auditor):
            class RandomClean:
                def clean(self, dataset, rng):
                    return np.asarray(rng.normal() + sum(dataset))
                def privatize(self, clean, rng):
                    return clean + rng.laplace(0, 2.0, clean.shape)
            sizes = [privacy_auditor.measure(RandomClean(), PAIR, n_snapshots=n).n_snapshots for n in (None, 400)]
            assert sizes[0] < sizes[1] <= 400
            privacy_auditor.check(RandomClean(), PAIR)
        """
    )
    run.result.assert_outcomes(passed=3)


def test_equal_audits_of_two_names_have_their_own_streams(audits):
    run = audits(
        """
        @privacy_audit(epsilon=1.0, max_checks=3)
        def test_it(privacy_auditor):
            seeds = {privacy_auditor.check(LaplaceSum(1.0), PAIR, name=name).seed for name in (None, "a", "b")}
            assert len(seeds) == 3
        """
    )
    run.result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "check(lambda dataset: 0.0, PAIR)",
            "TypeError: check takes a mechanism, got the callable <lambda>: say what it returns, "
            "from_sampler(<lambda>) for fn(dataset, n, rng) -> n outputs, or from_callable(<lambda>) for "
            "fn(dataset) -> one output.",
        ),
        (
            "check(LaplaceSum, PAIR)",
            "TypeError: check takes an instance of a mechanism, got the class LaplaceSum: write LaplaceSum(...).",
        ),
        (
            "check(3.5, PAIR)",
            "TypeError: check takes a mechanism, got 3.5 of type float without clean and privatize: give it *",
        ),
        ("measure(None, PAIR)", "TypeError: check takes a mechanism, got None of type NoneType without *"),
        (
            "check(GOOD, PAIR, epsilon='1')",
            "*InvalidClaim: epsilon must be a finite number above 0, got '1' of type str.",
        ),
        (
            "check(GOOD, PAIR, epsilon=float('inf'))",
            "*InvalidClaim: epsilon must be a finite number above 0, got inf.",
        ),
        ("check(GOOD, PAIR, delta=1)", "*InvalidClaim: delta must be a number in [[]0, 1), got 1."),
        (
            "check(GOOD, PAIR, n_trials=2.5)",
            "TypeError: check: n_trials must be a positive integer, got 2.5 of *",
        ),
        ("check(GOOD, PAIR, n_trials=0)", "ValueError: check: n_trials must be a positive integer, got 0."),
        (
            "check(GOOD, PAIR, n_snapshots='9')",
            "TypeError: check: n_snapshots must be a positive integer, got '9' *",
        ),
        ("check(GOOD, PAIR, name=3)", "TypeError: check: name must be a string, got 3 of type int."),
        (
            "check(GOOD, PAIR, views='black-box')",
            "TypeError: *views must be a collection of *, got 'black-box'.",
        ),
        (
            "check(GOOD, PAIR, scope='all')",
            "ValueError: scope must be one of 'pipeline', 'noise', got 'all'.",
        ),
        ("check(GOOD, PAIR, correction='none')", "ValueError: correction must be one of *, got 'none'."),
        ("check(GOOD, PAIR, estimator=None)", "ValueError: estimator must be one of *, got None."),
        ("check(GOOD, PAIR, attacks=3)", "TypeError: attacks must be a mapping of name to function, got 3."),
        ("check(GOOD, PAIR, side_channels='timing')", "TypeError: side_channels must be a collection of *"),
        (
            "check(GOOD, PAIR, executor=3)",
            "TypeError: executor must be a concurrent.futures executor, got 3.",
        ),
        ("check(GOOD, [1.0])", "*neighbours must be *"),
        ("check(GOOD, ([1.0], [1.0]))", "*VacuousAudit: *"),
        (
            "snapshot('a', 3, (0, 1), inputs={})",
            "TypeError: snapshot: record must be callable, got 3 of type int.",
        ),
        (
            "snapshot('a', print, (0, 1, 2), inputs={})",
            "TypeError: snapshot: neighbours must be a (reference, canary) pair of datasets, got (0, 1, 2).",
        ),
        (
            "snapshot('a', print, (0, 1), inputs={}, size=0)",
            "ValueError: snapshot: size must be a positive integer, got 0.",
        ),
        ("snapshot('a/b', print, (0, 1), inputs={})", "ValueError: snapshot name must be *got 'a/b'."),
        (
            "snapshot('a', print, (0, 1), inputs=[1])",
            "TypeError: inputs must be a mapping *, got [[]1] of type list.",
        ),
    ],
)
def test_bad_arguments_are_named_with_what_is_accepted(audits, call, message):
    run = audits(
        f"""
        GOOD = LaplaceSum(1.0)

        @privacy_audit(epsilon=1.0)
        def test_it(privacy_auditor):
            privacy_auditor.{call}
        """
    )
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines([f"E *{message}"])


def test_the_fixture_has_a_name_without_an_address(audits):
    run = audits("def test_it(privacy_auditor): print(repr(privacy_auditor))", "-s")
    run.result.stdout.fnmatch_lines(["*privacy_auditor"])


def test_a_mechanism_error_shows_its_cause_and_not_the_engine(audits):
    run = audits(
        """
        def broken(dataset, n, rng):
            raise ZeroDivisionError("no records")

        @privacy_audit(epsilon=1.0)
        def test_it(privacy_auditor):
            privacy_auditor.check(from_sampler(broken), PAIR)
        """
    )
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(["*ZeroDivisionError: no records", "*MechanismError: *"])


def test_early_stop_a_claim_curve_and_a_measurement_take_the_engines_options(audits):
    run = audits(
        """
        from dp_icl.calibration import classical_gaussian_sigma
        from pytest_snapaudit.engine.noise import GaussianNoise

        class Classical:
            deterministic = True
            noise = GaussianNoise(classical_gaussian_sigma(1.0, 1e-5, sensitivity=1.0))
            claimed_views = {"white-box"}
            def clean(self, dataset, rng):
                return np.asarray(float(sum(dataset)))
            def privatize(self, clean, rng):
                return clean + rng.normal(0.0, self.noise.sigma, clean.shape)

        def overpromised(epsilon):
            return 1e-5 if epsilon >= 1 else 1e-9

        @privacy_audit(epsilon=1.0, delta=1e-5, max_checks=2)
        def test_curves(privacy_auditor):
            modest = privacy_auditor.check(Classical(), PAIR, claim_curve=lambda epsilon: 1.0)
            assert modest.verdict.name == "CONSISTENT"
            privacy_auditor.check(Classical(), PAIR, claim_curve=overpromised)

        @privacy_audit(epsilon=8.0, n_trials=100_000, max_checks=2)
        def test_early(privacy_auditor):
            stopped = privacy_auditor.check(LaplaceSum(1.0), PAIR, epsilon=2.0, stop_early=True)
            whole = privacy_auditor.check(LaplaceSum(1.0), PAIR, epsilon=2.0)
            assert stopped.n_trials < whole.n_trials == 100_000
            assert privacy_auditor.measure(LaplaceSum(1.0), PAIR, epsilon=2.0, stop_early=True).n_trials < 100_000

        @privacy_audit(epsilon=1.0)
        def test_misspelled(privacy_auditor):
            privacy_auditor.measure(LaplaceSum(1.0), PAIR, n_trial=500)

        @privacy_audit(epsilon=1.0)
        def test_misspelled_check(privacy_auditor):
            privacy_auditor.check(LaplaceSum(1.0), PAIR, n_trial=500)
        """,
        trials=None,
    )
    run.result.assert_outcomes(failed=3, passed=1)
    run.result.stdout.fnmatch_lines(
        [
            "*PrivacyViolation: *",
            "*TypeError: measure got an unknown argument n_trial; did you mean n_trials? It takes *",
            "*TypeError: check got an unknown argument n_trial; did you mean n_trials? It takes *",
        ]
    )
    assert run.verdicts()["test_it.py::test_curves"] == "VIOLATION"
