"""``privacy_auditor.search``: explore a strategy without ``@given``, certify the worst configuration alone."""

HEAD = """
from hypothesis import assume, given, settings, strategies as st

from pytest_snapaudit.strategies import adversarial, claims, neighbours, partitions
"""

UNDERSTATED = (
    HEAD
    + """
SPACE = st.tuples(st.integers(1, 40), st.sampled_from([0.5, 1.0, 2.0]))

def build(configuration):
    size, epsilon = configuration
    return LaplaceSum(epsilon, understated=1.0 if size != 13 else 2.0), PAIR, PrivacyClaim(epsilon)
"""
)


def test_the_worst_configuration_alone_is_certified_at_the_full_confidence(audits, pytester):
    pytester.makeconftest(
        """
        def pytest_snapaudit_result(item, result):
            with open("audits.txt", "a") as lines:
                lines.write(f"{result.name} {result.confidence}\\n")
        """
    )
    run = audits(
        HEAD
        + """
@privacy_audit(confidence=0.95)
def test_it(privacy_auditor):
    def build(understated):
        return LaplaceSum(1.0, understated=understated), PAIR, PrivacyClaim(4.0)

    found = privacy_auditor.search(st.sampled_from([0.5, 1.0, 3.0, 2.0]), build)
    assert isinstance(found, SearchResult)
    assert found.configuration == 3.0
    assert found.result.verdict == "CONSISTENT" and found.result.confidence == pytest.approx(0.95)
    assert 2.0 < found.result.epsilon_lower < 3.0
    estimates = dict(found.trace)
    assert sorted(estimates) == ["0.5", "1.0", "2.0", "3.0"]
    assert sorted(estimates, key=estimates.get) == ["0.5", "1.0", "2.0", "3.0"]
    assert all(abs(estimates[key] - float(key)) < 0.75 for key in estimates)
    assert found.vacuous == 0
    assert "trace" not in repr(found)
"""
    )
    run.result.assert_outcomes(passed=1)
    (line,) = (pytester.path / "audits.txt").read_text().splitlines()
    assert line == "LaplaceSum(epsilon=1.0, understated=3.0) 0.95"


def test_a_refuted_configuration_fails_the_test_and_is_named(audits):
    run = audits(
        UNDERSTATED
        + """
@privacy_audit()
def test_it(privacy_auditor):
    privacy_auditor.search(SPACE, build)
"""
    )
    run.result.assert_outcomes(failed=1)
    run.result.stdout.fnmatch_lines(
        [
            "E *PrivacyViolation: epsilon >= * > * claimed (delta=0, 99.9% confidence)",
            "E *LaplaceSum(epsilon=*, understated=2.0), black-box, *",
            "E *the worst of * configurations searched: (13, *",
            "E *reproduce: pytest test_it.py::test_it --snapaudit-seed=0 --snapaudit-trials=2000",
        ]
    )
    assert run.rows[0].verdict == "VIOLATION"
    assert run.rows[0].configurations == 0  # outside @given: one check


def test_draws_and_verdict_depend_on_run_seed_test_and_name_alone(audits):
    suite = (
        UNDERSTATED
        + """
@privacy_audit(max_checks=2)
def test_it(privacy_auditor):
    one, again, other = (
        privacy_auditor.search(SPACE, build, examples=20, epsilon=9.0, name=name) for name in (None, None, "other")
    )
    assert one == again != other
    print("TRACE", one.trace, one.result.epsilon_lower)
"""
    ).replace("PrivacyClaim(epsilon)", "PrivacyClaim(8.0)")

    def trace(*args):
        run = audits(suite, "-s", *args)
        run.result.assert_outcomes(passed=1)
        return next(line for line in run.result.outlines if "TRACE" in line)

    assert trace() == trace()
    assert trace() != trace("--snapaudit-seed=1")


def test_presets_begin_with_what_must_be_tried(audits):
    run = audits(
        HEAD
        + """
PRESET = adversarial("additive-noise", max_delta=0.0)

@dataclass(frozen=True)
class OneSided:
    epsilon: float
    bounds: tuple
    deterministic = True

    def clean(self, rows, rng):
        return np.minimum(np.nan_to_num(np.asarray(rows, float), posinf=1e9, neginf=-1e9), self.bounds[1]).sum()

    def privatize(self, clean, rng):
        return clean + rng.laplace(0, max(map(abs, self.bounds)) / self.epsilon, clean.shape)

@privacy_audit()
def test_it(privacy_auditor):
    met = []
    def build(c):
        met.append(c)
        return OneSided(c.epsilon, c.bounds), c.neighbours, c.claim
    with pytest.raises(PrivacyViolation):
        privacy_auditor.search(PRESET, build, examples=20)
    assert met[:len(PRESET.must_try)] == list(PRESET.must_try)
"""
    )
    run.result.assert_outcomes(passed=1)


def test_build_may_reject_and_vacuous_configurations_are_counted(audits):
    run = audits(
        HEAD
        + """
def build(rows):
    assume(len(rows) < 3)
    return LaplaceSum(1.0), (rows, [*rows, float(len(rows) % 2)])

@privacy_audit(epsilon=1.0)
def test_some(privacy_auditor):
    found = privacy_auditor.search(st.lists(st.just(0.0), max_size=6), build)
    assert [text for text, _ in found.trace] == ["[0.0]"] and found.vacuous == 2

@privacy_audit(epsilon=1.0)
def test_none(privacy_auditor):
    privacy_auditor.search(st.lists(st.just(0.0), max_size=0), build)
"""
    )
    run.result.assert_outcomes(passed=1, failed=1)
    run.result.stdout.fnmatch_lines(
        ["*VacuousAudit: search: none of the configurations met can tell the two sides apart, for example *"]
    )


def test_a_search_shares_the_confidence_with_other_checks(audits):
    run = audits(
        HEAD
        + """
def build(size):
    return LaplaceSum(1.0), ([0.0] * size, [0.0] * (size - 1) + [1.0])

@privacy_audit(epsilon=1.0, max_checks=2)
def test_declared(privacy_auditor):
    found = privacy_auditor.search(st.integers(1, 5), build)
    assert found.result.confidence == privacy_auditor.check(LaplaceSum(1.0), PAIR).confidence == 0.9995

@privacy_audit(epsilon=1.0)
def test_undeclared(privacy_auditor):
    privacy_auditor.search(st.integers(1, 5), build, name="one")
    privacy_auditor.search(st.integers(1, 5), build, name="two")
"""
    )
    run.result.assert_outcomes(passed=1, failed=1)
    run.result.stdout.fnmatch_lines(["*BudgetExceeded: this test checks 2 different configurations*"])


def test_mistakes_are_named(audits):
    run = audits(
        HEAD
        + """
MISTAKES = [
    (dict(strategy=[1], build=lambda c: c), TypeError, "search: strategy must be a Hypothesis strategy, or a preset"),
    (dict(strategy=st.just(1), build=3), TypeError, "search: build must be callable, got 3 of type int"),
    (dict(strategy=st.just(1), build=lambda c: c), TypeError, "search: build must return .mechanism, neighbours. or"),
    (dict(strategy=st.just(1), build=lambda c: (1, 2, 3)), TypeError, "got the claim 3 for 1"),
    (dict(strategy=st.just(1), build=lambda c: (LaplaceSum(1.0), PAIR), examples=0), ValueError, "positive integer"),
    (dict(strategy=st.just(1), build=lambda c: (LaplaceSum(1.0), PAIR)), InvalidClaim, "no privacy claim to test"),
]

def test_it(privacy_auditor):
    for arguments, kind, text in MISTAKES:
        with pytest.raises(kind, match=text):
            privacy_auditor.search(**arguments)

@privacy_audit(epsilon=1.0)
@given(st.integers(0, 3))
def test_inside_given(privacy_auditor, x):
    privacy_auditor.search(st.just(1), lambda c: (LaplaceSum(1.0), PAIR))
"""
    )
    run.result.assert_outcomes(passed=1, failed=1)
    run.result.stdout.fnmatch_lines(
        ["*RuntimeError: privacy_auditor.search draws its own examples and was called inside @given: *"]
    )
