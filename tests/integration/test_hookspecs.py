"""The extension points, through the examples in their own documentation."""

import inspect
import json
import textwrap

from pytest_snapaudit import hookspecs


def _example(hook):
    text = inspect.getdoc(hook).split("In conftest.py::\n\n")[1]
    return textwrap.dedent(text)


def test_an_object_of_a_library_becomes_a_mechanism(audits, pytester):
    pytester.makeconftest(_example(hookspecs.pytest_snapaudit_as_mechanism))
    run = audits(
        """
        class GaussianAdder:
            def __init__(self, epsilon, scale):
                self.epsilon, self.scale = epsilon, scale
            def add_noise_to(self, values, rng):
                return np.asarray(values) + rng.laplace(0, self.scale, len(values))

        @privacy_audit()
        def test_good(privacy_auditor):
            result = privacy_auditor.check(GaussianAdder(1.0, 1.0), PAIR)
            assert (result.name, result.claim) == ("GaussianAdder", PrivacyClaim(1.0))

        @privacy_audit()
        def test_bad(privacy_auditor):
            privacy_auditor.check(GaussianAdder(1.0, 0.4), PAIR)

        def test_unknown(privacy_auditor):
            privacy_auditor.check(object, PAIR, epsilon=1.0)
        """
    )
    run.result.assert_outcomes(passed=1, failed=2)
    assert run.verdicts() == {"test_it.py::test_good": "CONSISTENT", "test_it.py::test_bad": "VIOLATION"}


def test_what_the_hook_returns_is_checked(audits, pytester):
    pytester.makeconftest("def pytest_snapaudit_as_mechanism(obj): return 'noise'")
    run = audits("def test_it(privacy_auditor): privacy_auditor.check({}, PAIR, epsilon=1.0)")
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(
        [
            "*TypeError: a pytest_snapaudit_as_mechanism hook returned 'noise' of type str for dict; it must return *"
        ]
    )


DIGITS = """
    import pytest
    def digit_sampler(shown):
        # the last digit tells the sides apart, the value itself does not
        def sample(dataset, n, rng):
            digits = rng.integers(0, 10, n) if not shown else np.where(rng.random(n) < 0.9, dataset[0], 10 - dataset[0])
            return rng.integers(0, 10**6, n) * 10.0 + digits
        return from_sampler(sample, name="digits")
    """


def test_an_attack_of_a_hook_is_tried_on_every_mechanism(audits, pytester):
    pytester.makeconftest(_example(hookspecs.pytest_snapaudit_attacks))
    pytester.makeini("[pytest]\nmarkers = digits\n")
    run = audits(
        DIGITS
        + """
    @pytest.mark.digits
    @privacy_audit(epsilon=1.0)
    def test_leaking(privacy_auditor):
        privacy_auditor.check(digit_sampler(True), ((3,), (7,)))

    @pytest.mark.digits
    @privacy_audit(epsilon=1.0)
    def test_private(privacy_auditor):
        assert privacy_auditor.check(digit_sampler(False), ((3,), (7,))).epsilon_lower < 0.1

    @pytest.mark.digits
    @privacy_audit(epsilon=1.0)
    def test_named_by_the_test_too(privacy_auditor):
        own = {"last digit": lambda rows: rows[:, 0]}
        result = privacy_auditor.check(digit_sampler(True), ((3,), (7,)), attacks=own)
        assert result.epsilon_lower < 1.0

    @privacy_audit(epsilon=1.0)
    def test_without_the_attack(privacy_auditor):
        privacy_auditor.check(digit_sampler(True), ((3,), (7,)))
    """
    )
    assert run.verdicts() == {
        "test_it.py::test_leaking": "VIOLATION",
        "test_it.py::test_private": "CONSISTENT",
        "test_it.py::test_named_by_the_test_too": "CONSISTENT",
        "test_it.py::test_without_the_attack": "CONSISTENT",
    }
    run.result.stdout.fnmatch_lines(["*last digit*"])


def test_what_the_attacks_hook_returns_is_checked(audits, pytester):
    pytester.makeconftest("def pytest_snapaudit_attacks(item, mechanism): return ['digit']")
    run = audits("def test_it(privacy_auditor): privacy_auditor.check(LaplaceSum(1.0), PAIR, epsilon=1.0)")
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(
        ["*TypeError: a pytest_snapaudit_attacks hook returned *'digit'* of type list;*"]
    )


def test_every_new_result_is_announced_before_it_fails_the_test(audits, pytester):
    pytester.makeconftest(_example(hookspecs.pytest_snapaudit_result))
    run = audits(
        """
        @privacy_audit(epsilon=1.0, max_checks=2)
        def test_it(privacy_auditor):
            for understated in (1.0, 1.0, 3.0):
                privacy_auditor.check(LaplaceSum(1.0, understated), PAIR)
        """
    )
    run.result.assert_outcomes(failed=1)
    lines = [json.loads(line) for line in (pytester.path / "audits.jsonl").read_text().splitlines()]
    assert [line["verdict"] for line in lines] == ["CONSISTENT", "VIOLATION"]
    assert {line["test"] for line in lines} == {"test_it.py::test_it"}
    assert lines[1]["epsilon_lower"] > 1.0
