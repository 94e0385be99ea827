"""Every argument of the engine's entry points, given wrongly: which argument, which value, what is accepted."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import InvalidClaim, VacuousAudit
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.noise import GaussianNoise, LaplaceNoise
from pytest_snapaudit.engine.result import Verdict
from pytest_snapaudit.engine.settings import validate_count
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.testing import UNIT_NEIGHBOURS, LaplaceSum

CLAIM = PrivacyClaim(1.0)
PAIR = UNIT_NEIGHBOURS


def laplace_sampler(dataset, n, rng):
    return sum(dataset) + rng.laplace(0.0, 1.0, n)


LAPLACE = LaplaceSum(1.0)


def run(mechanism: Any = LAPLACE, neighbours: Any = PAIR, claim: Any = CLAIM, **options: Any):
    return audit(mechanism, neighbours, claim, **{"n_trials": 100, **options})


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf, -math.inf, 10**400, Fraction(10**400)])
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(InvalidClaim, match="epsilon must be a finite number above 0, got ") as caught:
        PrivacyClaim(epsilon)
    assert repr(epsilon)[:20] in str(caught.value)


@pytest.mark.parametrize("epsilon", ["1", None, True, 1 + 0j, [1.0]])
def test_an_epsilon_of_another_type_is_refused_with_its_type(epsilon):
    with pytest.raises(
        InvalidClaim, match=f"epsilon must be a finite number .* of type {type(epsilon).__name__}"
    ):
        PrivacyClaim(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 1.5, math.nan, math.inf])
def test_a_delta_outside_0_1_is_refused(delta):
    with pytest.raises(InvalidClaim, match=r"delta must be a number in \[0, 1\), got "):
        PrivacyClaim(1.0, delta)


@pytest.mark.parametrize("delta", ["0", None, False])
def test_a_delta_of_another_type_is_refused(delta):
    with pytest.raises(InvalidClaim, match=r"delta must be a number in \[0, 1\), got .* of type "):
        PrivacyClaim(1.0, delta)


def test_epsilon_0_needs_a_positive_delta():
    with pytest.raises(
        InvalidClaim, match=r"got 0 with delta=0: .* give a positive epsilon, or a positive delta"
    ):
        PrivacyClaim(0)
    assert PrivacyClaim(0, 0.1).epsilon == 0.0


@pytest.mark.parametrize("number", [2, np.float32(2), np.int64(2), Fraction(2)])
def test_numbers_of_any_real_type_become_floats(number):
    assert type(PrivacyClaim(number).epsilon) is float
    assert type(GaussianNoise(number).sigma) is float
    assert type(LaplaceNoise(number).scale) is float


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 10**400, True, "1", None, 1j])
@pytest.mark.parametrize(("noise", "name"), [(GaussianNoise, "sigma"), (LaplaceNoise, "scale")])
def test_a_noise_scale_must_be_finite_and_positive(noise, name, value):
    with pytest.raises(
        ValueError, match=f"{noise.__name__}: {name} must be a finite number above 0, got "
    ) as caught:
        noise(value)
    assert repr(value)[:20] in str(caught.value)


@pytest.mark.parametrize("wrap", [from_sampler, from_callable])
def test_a_wrapped_function_must_be_callable_with_a_string_name_and_a_claim(wrap):
    with pytest.raises(TypeError, match=f"{wrap.__name__}: fn must be callable, got 5 of type int"):
        wrap(5)
    with pytest.raises(TypeError, match=f"{wrap.__name__}: name must be a string, got 7"):
        wrap(laplace_sampler, name=7)
    with pytest.raises(TypeError, match=rf"{wrap.__name__}: claim must be a PrivacyClaim, got \(1.0, 0.0\)"):
        wrap(laplace_sampler, claim=(1.0, 0.0))


def test_a_wrapped_function_is_named_after_itself():
    assert from_sampler(laplace_sampler).name == "laplace_sampler"
    assert from_sampler(laplace_sampler, name="mean").name == "mean"

    def inner(dataset):
        return dataset

    assert from_callable(functools.partial(inner)).name == "partial"
    assert "<locals>" not in from_callable(inner).name


@pytest.mark.parametrize("claim", [(1.0, 0.0), 1.0, None, "1"])
def test_the_claim_must_be_a_claim(claim):
    with pytest.raises(TypeError, match=r"claim must be a PrivacyClaim, got .* of type "):
        run(claim=claim)


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, -0.5, 1.5, math.nan, math.inf, "0.9", None, True])
def test_a_confidence_outside_0_1_is_refused(confidence):
    with pytest.raises(ValueError, match=r"confidence must be a number in \(0, 1\), got ") as caught:
        run(confidence=confidence)
    assert repr(confidence) in str(caught.value)


@pytest.mark.parametrize("name", ["n_trials", "n_snapshots"])
@pytest.mark.parametrize(
    "value", [0, -5, 99, 99.5, 200.0, True, "200", [200], np.array(500.7), np.array([500])]
)
def test_a_count_must_be_an_integer_of_at_least_100(name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 100, got ") as caught:
        run(**{name: value})
    assert repr(value) in str(caught.value)


def test_no_count_is_a_missing_default_only_for_trials():
    with pytest.raises(ValueError, match="n_snapshots must be an integer of at least 100, got None"):
        run(n_snapshots=None)


def test_counts_of_numpy_are_counts():
    assert run(n_trials=np.int64(100)) == run(n_trials=100)
    assert type(validate_count("n_trials", np.uint16(100))) is int


@pytest.mark.parametrize("value", ["all", None, 5, np.array(["a", "b"]), ["auto"]])
@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("scope", "'pipeline', 'noise'"),
        ("correction", "'auto', 'clopper-pearson', 'bernstein', 'betting'"),
        ("estimator", "'auto', 'dp', 'gdp'"),
    ],
)
def test_a_choice_names_what_is_accepted(name, accepted, value):
    with pytest.raises(ValueError, match=f"{name} must be one of {accepted}, got ") as caught:
        run(**{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 1.0, True, "7", None, [], [1, -1], [1, 0.5], np.array([1]), b"7"])
def test_a_seed_is_a_non_negative_integer_or_a_sequence_of_them(seed):
    with pytest.raises(ValueError, match="seed must be a non-negative integer or a sequence of them, got "):
        run(seed=seed)


def test_seeds_of_numpy_and_of_sequences_are_recorded_as_integers():
    result = run(seed=(np.int64(3), 2**80))
    assert result.seed == (3, 2**80)
    assert all(type(part) is int for part in result.seed)
    assert run(seed=range(1, 3)).seed == (1, 2)


def test_the_name_must_be_a_string():
    with pytest.raises(TypeError, match="name must be a string, got 5 of type int"):
        run(name=5)
    assert run(name="mean").name == "mean"


@pytest.mark.parametrize("executor", [4, "threads", object()])
def test_the_executor_must_have_a_map(executor):
    with pytest.raises(TypeError, match=r"executor must be a concurrent.futures executor, got "):
        run(executor=executor)


@pytest.mark.parametrize("attacks", ["sum", 5, np.sum, {"sum": 5}, [np.sum], {1, 2}])
def test_attacks_are_a_mapping_of_name_to_function(attacks):
    with pytest.raises(TypeError, match="attacks must be a mapping of name to function, got "):
        run(attacks=attacks)


def test_an_attack_returns_one_score_per_output():
    with pytest.raises(
        ValueError, match=r"attack 'mean' must return one score per output: expected shape \(250,\), got \(\)"
    ):
        run(attacks={"mean": np.mean})


def test_an_attack_that_raises_is_named():
    with pytest.raises(IndexError) as caught:
        run(attacks={"fourth column": lambda rows: rows[:, 3]})
    assert caught.value.__notes__ == ["raised by the attack 'fourth column' on outputs of shape (250, 1)"]


def test_side_channels_are_a_collection_of_known_names():
    for wrong in ("low-bit", 5, None):
        with pytest.raises(
            TypeError, match=r"side_channels must be a collection of \('low-bit', 'timing'\), got "
        ):
            run(side_channels=wrong)
    with pytest.raises(ValueError, match="side_channels must be one of 'low-bit', 'timing', got 'power'"):
        run(side_channels=("power",))


def test_timing_needs_one_call_per_output():
    for mechanism in (LaplaceSum(1.0), from_sampler(laplace_sampler)):
        with pytest.raises(
            ValueError, match=r'side_channels="timing" needs one call per output; .*from_callable'
        ):
            run(mechanism, side_channels=("timing",))


@pytest.mark.parametrize("views", ["black-box", 5, {"black-box": 1}, iter(["black-box"])])
def test_views_of_the_wrong_type_are_refused(views):
    with pytest.raises(TypeError, match='views must be a collection of "black-box" and "white-box", got '):
        run(views=views)


@pytest.mark.parametrize("views", [{"grey-box"}, [], ["black-box", 3], [["black-box"]], frozenset()])
def test_unknown_or_no_views_are_refused(views):
    with pytest.raises(ValueError, match='views must be a collection of "black-box" and "white-box", got '):
        run(views=views)


def test_claimed_views_are_checked_with_the_mechanism_named():
    class Odd(LaplaceSum):
        claimed_views = frozenset({"everything"})

    with pytest.raises(ValueError, match=r"Odd.*: claimed_views must be a collection of"):
        run(Odd(1.0))


def test_a_sampler_has_a_black_box_view_only():
    sampler = from_sampler(laplace_sampler)
    with pytest.raises(ValueError, match="laplace_sampler: a sampler has only a black-box view, got views="):
        run(sampler, views={"white-box", "black-box"})
    with pytest.raises(TypeError, match='views must be a collection of "black-box" and "white-box"'):
        run(sampler, views="white-box")
    assert run(sampler, views=["black-box"]).view == "black-box"


def test_a_sampler_has_no_noise_stage():
    with pytest.raises(
        ValueError, match=r'laplace_sampler: a sampler has no noise stage .* use scope="pipeline"'
    ):
        run(from_sampler(laplace_sampler), scope="noise")


def test_a_sampler_takes_no_snapshots():
    side = Snapshot(np.array([0.0]), np.array([1]))
    with pytest.raises(TypeError, match=r"laplace_sampler: a sampler has no clean stage.*SnapshotPair"):
        run(from_sampler(laplace_sampler), SnapshotPair(side, side))


@pytest.mark.parametrize("function", [laplace_sampler, functools.partial(laplace_sampler), max])
def test_a_bare_function_names_both_wrappers(function):
    with pytest.raises(TypeError, match=r"is a bare function: wrap it with from_sampler .* or from_callable"):
        run(function)


@pytest.mark.parametrize("mechanism", [None, 5, "mean", object()])
def test_an_object_without_the_two_stages_is_no_mechanism(mechanism):
    with pytest.raises(TypeError, match=r"is not a mechanism: it needs clean\(dataset, rng\) and privatize"):
        run(mechanism)


@pytest.mark.parametrize("neighbours", [None, 5, (1,), (1, 2, 3), [], "ab", {0: 1, 1: 2}, np.zeros((2, 3))])
def test_neighbours_are_a_pair(neighbours):
    with pytest.raises(
        TypeError,
        match=r"neighbours must be a \(reference, canary\) pair of datasets or a SnapshotPair, got ",
    ):
        run(neighbours=neighbours)


SHARED = object()


@pytest.mark.parametrize(
    ("reference", "canary"),
    [
        ([1.0, 2.0], [1.0, 2.0]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.arange(3), np.arange(3)),
        (["x", math.nan], ["x", math.nan]),
        (LaplaceSum(1.0), LaplaceSum(1.0)),
        (SHARED, SHARED),
    ],
)
def test_equal_neighbours_test_nothing(reference, canary):
    with pytest.raises(VacuousAudit, match=r"neighbouring datasets are equal.* differs in one record"):
        run(from_sampler(lambda dataset, n, rng: rng.random(n)), (reference, canary))


@pytest.mark.parametrize(
    ("reference", "canary"),
    [([0.0], [-0.0]), ([1], [True]), (object(), object()), (np.arange(3), np.arange(3.0)), ("a", b"a")],
)
def test_neighbours_that_may_differ_are_audited(reference, canary):
    result = run(
        from_sampler(lambda dataset, n, rng: rng.random(n)), (reference, canary), claim=PrivacyClaim(0.5)
    )
    assert result.verdict is Verdict.CONSISTENT


def test_a_declared_noise_of_another_kind_is_refused():
    class Odd(LaplaceSum):
        noise = "gaussian"

    with pytest.raises(
        TypeError, match=r"noise must be GaussianNoise\(sigma\) or LaplaceNoise\(scale\), got 'gaussian'"
    ):
        run(Odd(1.0))


def test_a_declaration_of_another_package_is_read_by_name_and_parameter():
    class GaussianNoise:
        sigma = -1.0

    class Odd(LaplaceSum):
        noise = GaussianNoise()

    with pytest.raises(ValueError, match=r"GaussianNoise: sigma must be a finite number above 0, got -1.0"):
        run(Odd(1.0))


@pytest.mark.parametrize(
    ("rows", "counts", "error", "message"),
    [
        ([[1], [1, 2]], [1, 1], ValueError, "inhomogeneous"),
        (np.array([None, 1]), [1, 1], TypeError, "rows must be a numeric or string array, got dtype object"),
        ([], [], ValueError, "rows must hold at least one clean output"),
        (3.0, [1], ValueError, "rows must hold at least one clean output"),
        ([1.0, 2.0], [1], ValueError, "counts must be 2 positive integers, one per row"),
        ([1.0, 2.0], [1, 0], ValueError, "counts must be 2 positive integers, one per row"),
        ([1.0, 2.0], [1.0, 2.0], ValueError, "counts must be 2 positive integers, one per row"),
    ],
)
def test_a_snapshot_needs_rows_and_their_counts(rows, counts, error, message):
    with pytest.raises(error, match=message):
        Snapshot(rows, np.array(counts))


def test_a_snapshot_pair_needs_two_snapshots_of_one_shape():
    side = Snapshot(np.zeros((1, 2)), np.array([1]))
    with pytest.raises(TypeError, match="SnapshotPair: canary must be a Snapshot, got ndarray"):
        SnapshotPair(side, np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"SnapshotPair: both sides .* one shape, got \(2,\) and \(3,\)"):
        SnapshotPair(side, Snapshot(np.zeros((1, 3)), np.array([1])))


def test_counting_alone_is_refused_for_a_random_clean_stage():
    class Random:
        def clean(self, dataset, rng):
            return dataset + rng.random()

        def privatize(self, clean, rng):
            return clean + rng.laplace(size=clean.shape)

    with pytest.raises(ValueError, match='correction="clopper-pearson" ignores how few clean outputs'):
        run(Random(), (0.0, 1.0), correction="clopper-pearson", n_snapshots=100)


def builtin(value: Any) -> bool:
    if isinstance(value, dict):
        return all(builtin(part) for pair in value.items() for part in pair)
    if isinstance(value, tuple | list):
        return all(map(builtin, value))
    return type(value) in (str, int, float, bool, type(None))


@pytest.mark.parametrize("correction", ["auto", "betting", "clopper-pearson", "bernstein"])
def test_a_result_is_made_of_built_in_types(correction):
    result = audit(
        LaplaceSum(1.0),
        PAIR,
        PrivacyClaim(np.float64(1.0), np.float32(1e-5)),
        confidence=np.float64(0.95),
        n_trials=np.int32(500),
        seed=[np.uint8(3)],
        correction=correction,
    )
    assert builtin(result.to_dict())
    assert type(result.confidence) is float
    assert result.confidence == 0.95


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 300.0, 700.0, 1e308])
@pytest.mark.filterwarnings("error")
def test_extreme_claims_are_decided_without_a_warning(epsilon):
    result = run(claim=PrivacyClaim(epsilon, 1e-6), n_trials=2000)
    assert result.verdict is (Verdict.INCONCLUSIVE if epsilon > 100 else Verdict.VIOLATION)


@pytest.mark.parametrize("confidence", [1e-20, 1e-3, 1 - 1e-12])
@pytest.mark.parametrize("correction", ["auto", "betting", "clopper-pearson"])
def test_extreme_confidences_are_decided(confidence, correction):
    result = run(confidence=confidence, correction=correction)
    assert 0.0 <= result.epsilon_lower <= result.max_detectable_epsilon
