"""``privacy_auditor.check_sensitivity``: a deterministic pass that users gate on, without a trial."""

HEAD = """
from hypothesis import given, settings, strategies as st

from pytest_snapaudit.strategies import adversarial, neighbours, neighbouring_vectors

@dataclass(frozen=True)
class Sum:
    lower: float | None = 0.0
    nan_counts_as: float = 0.0
    sensitivity = 1.0
    norm = "l1"

    def clean(self, rows, rng):
        return np.clip(np.nan_to_num(rows, nan=self.nan_counts_as), self.lower, 1.0).sum()

ROWS = neighbours(bounds=(0, 1))
"""


def test_a_strategy_is_searched_for_the_simplest_pair_beyond_the_declaration(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
def test_it(privacy_auditor):
    privacy_auditor.check_sensitivity(Sum(lower=None), ROWS)
"""
    )
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(
        [
            "E *SensitivityExceeded: sensitivity * > 1 declared (l1, ratio *)",
            "E *Sum(lower=None, nan_counts_as=0.0): clean outputs are * apart, pair *",
            "E *neighbours=*",
            "E *declare a sensitivity of at least *",
            "FAILED test_it.py::test_it - SensitivityExceeded: sensitivity *",
        ]
    )
    assert "Failing test case" not in run.result.stdout.str()


def test_it_counts_as_an_audit_and_returns_the_worst_pair(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
def test_strategy(privacy_auditor):
    found = privacy_auditor.check_sensitivity(Sum(), ROWS, examples=50)
    assert found.distance == pytest.approx(1.0) and 1 < found.n_pairs <= 60
    assert found == privacy_auditor.check_sensitivity(Sum(), ROWS, examples=50)

@privacy_audit(epsilon=1.0)
def test_pairs(privacy_auditor):
    found = privacy_auditor.check_sensitivity(Sum(), [([], [0.5]), ([], [0.25])])
    assert (found.distance, found.index, found.n_pairs) == (0.5, 0, 2)
    privacy_auditor.check_sensitivity(lambda rows, rng: len(rows), ([], [1]), sensitivity=1, norm="linf")

@privacy_audit(epsilon=1.0)
def test_preset(privacy_auditor):
    preset = adversarial("additive-noise", bounds=(0.0, 1.0))
    assert privacy_auditor.check_sensitivity(Sum(), preset, examples=20).n_pairs >= len(preset.must_try)

@privacy_audit(epsilon=1.0)
@settings(max_examples=20, database=None)
@given(pair=ROWS)
def test_inside_given(privacy_auditor, pair):
    privacy_auditor.check_sensitivity(Sum(), pair)
"""
    )
    run.result.assert_outcomes(passed=4)
    assert run.rows == ()  # nothing was drawn


def test_inside_given_it_shrinks_and_later_checks_are_not_charged(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=9.0)
@settings(max_examples=5, database=None)
@given(size=st.integers(3, 10**6))
def test_it(privacy_auditor, size):
    privacy_auditor.check_sensitivity(lambda size, rng: size, (0, size), sensitivity=700)
    privacy_auditor.check(LaplaceSum(1.0), ((0.0,), (1.0, *([0.0] * (size % 97)))))
""",
        trials=200,
    )
    run.result.assert_outcomes(failed=1)
    text = run.result.stdout.str()
    assert "size=701" in text
    assert "BudgetExceeded" not in text


def test_one_sided_failures_are_infinitely_far_apart(audits):
    run = audits(
        HEAD
        + """
@privacy_audit(epsilon=1.0)
def test_nan(privacy_auditor):
    privacy_auditor.check_sensitivity(Sum(nan_counts_as=np.nan), ROWS)

@privacy_audit(epsilon=1.0)
def test_always_raises(privacy_auditor):
    privacy_auditor.check_sensitivity(lambda rows, rng: 1 / 0, ROWS, sensitivity=1.0)

@privacy_audit(epsilon=1.0)
def test_random(privacy_auditor):
    privacy_auditor.check_sensitivity(lambda rows, rng: rng.random(), ROWS, sensitivity=1.0)

@privacy_audit(epsilon=1.0)
@given(st.integers())
def test_strategy_inside_given(privacy_auditor, x):
    privacy_auditor.check_sensitivity(Sum(), ROWS)
"""
    )
    run.result.assert_outcomes(failed=4)
    run.result.stdout.fnmatch_lines(
        [
            "E *SensitivityExceeded: sensitivity inf > 1 declared (l1, ratio inf)",
            "E *neighbours=*nan*",
            "E *MechanismError: *clean raised ZeroDivisionError on both sides *",
            "E *MechanismError: *two evaluations of clean on one dataset are *",
            "E *RuntimeError: check_sensitivity draws its own examples from a strategy and was called inside @given*",
        ]
    )
