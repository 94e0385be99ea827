"""What a mechanism may return, and what can only be a wiring mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import DeclarationMismatch, MechanismError, VacuousAudit
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.result import Verdict
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair

CLAIM = PrivacyClaim(1.0)


def run(mechanism: Any, neighbours: Any = (0.0, 1.0), **options: Any):
    return audit(mechanism, neighbours, CLAIM, **{"n_trials": 500, "n_snapshots": 100, **options})


class Stages:
    """A mechanism made of two functions; ``deterministic`` unless said otherwise."""

    def __init__(self, clean=None, privatize=None, *, deterministic=True, **members):
        self.deterministic = deterministic
        self._clean = clean or (lambda dataset, rng: np.asarray(dataset))
        self._privatize = privatize or (lambda rows, rng: rows + rng.laplace(size=rows.shape))
        for name, member in members.items():
            setattr(self, name, member)

    def clean(self, dataset, rng):
        return self._clean(dataset, rng)

    def privatize(self, clean, rng):
        return self._privatize(clean, rng)


def fail_with(error):
    def fail(*args):
        raise error

    return fail


@pytest.mark.parametrize("deterministic", [True, False])
def test_equal_clean_outputs_are_vacuous(deterministic):
    for value, what in ((3.0, "are equal"), (np.nan, "consist of NaN"), ("label", "are equal")):
        constant = Stages(lambda dataset, rng, value=value: np.array([value]), deterministic=deterministic)
        with pytest.raises(
            VacuousAudit, match=f"clean outputs of both sides {what}, so the noise stage is the same"
        ):
            run(constant)


@pytest.mark.parametrize("declared", ["yes", 1, None, np.array([True])])
def test_deterministic_is_true_or_false(declared):
    stages = Stages(lambda dataset, rng: np.array([float(dataset)]), deterministic=declared)
    with pytest.raises(TypeError, match=r"deterministic must be True or False, got "):
        run(stages)


def test_clean_shapes_that_differ_between_sides_are_refused():
    for options in ({"deterministic": True}, {"deterministic": False}):
        growing = Stages(lambda dataset, rng: np.zeros(2 + int(dataset)), **options)
        with pytest.raises(
            MechanismError, match=r"one shape on both sides, got \(2,\) on the reference and\s+\(3,\)"
        ):
            run(growing)


def test_clean_shapes_that_differ_between_evaluations_are_refused():
    ragged = Stages(lambda dataset, rng: np.zeros(rng.integers(1, 4)), deterministic=False)
    with pytest.raises(
        MechanismError, match=r"arrays of different shapes for one dataset: \[\(1,\), \(2,\), \(3,\)\]"
    ):
        run(ragged)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "clean must return numbers or labels, got NoneType holding objects"),
        ({"a": 1}, "clean must return numbers or labels, got dict holding objects"),
        ([[1], [2, 3]], "clean must return an array-like of one shape, got list"),
        (10**400, "clean must return numbers or labels, got int holding objects"),
    ],
)
def test_a_clean_output_of_objects_is_refused(value, message):
    with pytest.raises(MechanismError, match=message):
        run(Stages(lambda dataset, rng: value))


def test_one_clean_buffer_used_for_both_sides_is_not_mistaken_for_equal_outputs():
    buffer = np.zeros(1)

    def clean(dataset, rng):
        buffer[0] = dataset * 50
        return buffer

    assert run(Stages(clean)).violated


def test_a_clean_stage_that_always_raises_is_a_wiring_mistake():
    error = KeyError("prompt")
    for deterministic in (True, False):
        with pytest.raises(
            MechanismError, match=r"clean raises on both datasets \(KeyError\('prompt'\)\)"
        ) as caught:
            run(Stages(fail_with(error), deterministic=deterministic))
        assert caught.value.__cause__ is error


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("released", [True, False])
def test_a_clean_stage_that_raises_on_one_side_is_a_violation(deterministic, released):
    def clean(dataset, rng):
        if dataset:
            raise ZeroDivisionError
        return np.zeros(3)

    members = {"claimed_views": frozenset({"black-box", "white-box"})}
    if released:
        members["release"] = lambda noisy, rng: np.argmax(noisy, axis=1)
    result = run(Stages(clean, deterministic=deterministic, **members))
    assert all(view.epsilon_lower > 1 for view in result.views)
    assert [view.view for view in result.views] == (["white-box", "black-box"] if released else ["black-box"])


def test_a_clean_stage_that_raises_sometimes_is_refused():
    def clean(dataset, rng):
        if rng.random() < 0.5:
            raise OSError("no answer")
        return np.zeros(1)

    with pytest.raises(
        MechanismError, match=r"in .* of 125 evaluations of one dataset; .* with from_callable"
    ) as caught:
        run(Stages(clean, deterministic=False))
    assert isinstance(caught.value.__cause__, OSError)


def test_a_false_declaration_of_determinism_is_a_mismatch():
    for clean in (
        lambda dataset, rng: dataset + rng.normal(),
        lambda dataset, rng: dataset + np.random.normal(),
    ):
        with pytest.raises(
            DeclarationMismatch, match="two evaluations of clean on the reference dataset differ"
        ):
            run(Stages(clean))


def test_a_false_declaration_is_named_with_its_side():
    with pytest.raises(DeclarationMismatch, match="on the canary dataset differ"):
        run(Stages(lambda dataset, rng: dataset * rng.normal()))


def test_nan_in_a_deterministic_clean_output_is_no_mismatch():
    noisy = Stages(lambda dataset, rng: np.array([np.nan, dataset * 20]))
    assert run(noisy).violated


def test_a_snapshot_of_several_rows_contradicts_determinism():
    sides = [Snapshot(np.array([0.0, 1.0]) + i, np.array([5, 5])) for i in (0, 1)]
    with pytest.raises(DeclarationMismatch, match=r'holds 2 and 2 distinct clean outputs; .* scope="noise"'):
        run(Stages(), SnapshotPair(*sides))
    assert run(Stages(deterministic=False), SnapshotPair(*sides)).n_snapshots == 8


def test_snapshots_with_equal_rows_are_vacuous():
    side = Snapshot(np.array([2.0]), np.array([100]))
    for deterministic in (True, False):
        with pytest.raises(VacuousAudit, match="clean outputs of both sides are equal"):
            run(Stages(deterministic=deterministic), SnapshotPair(side, side))
    with pytest.raises(VacuousAudit, match="clean outputs of both sides are equal"):
        run(Stages(), SnapshotPair(side, side), scope="noise")


@pytest.mark.parametrize(
    ("privatize", "message"),
    [
        (
            lambda rows, rng: rows[:1],
            r"Stages: 500 outputs were asked for but 1 came back, in an array of shape \(1,\)",
        ),
        (lambda rows, rng: np.append(rows, 0.0), r"500 outputs were asked for but 501 came back"),
        (lambda rows, rng: [1.0, 2.0], r"500 outputs were asked for but 2 came back, in a list"),
        (lambda rows, rng: 3.0, r"a single float came back; return an array with one row per output"),
        (lambda rows, rng: None, r"a single NoneType came back"),
    ],
)
def test_a_wrong_number_of_rows_is_refused_with_the_mechanism_named(privatize, message):
    with pytest.raises(MechanismError, match=message):
        run(Stages(privatize=privatize))


def test_a_wrong_number_of_released_rows_is_refused():
    halved = Stages(release=lambda noisy, rng: noisy[::2])
    with pytest.raises(MechanismError, match="500 outputs were asked for but 250 came back"):
        run(halved)


def test_a_wrong_number_of_clean_batch_rows_is_refused():
    for batch, shape in ((np.zeros(3), r"\(3,\)"), (np.float64(0), r"\(\)")):
        mechanism = Stages(deterministic=False, clean_batch=lambda dataset, size, rng, batch=batch: batch)
        with pytest.raises(
            MechanismError, match=f"clean_batch must return 64 clean outputs, .* shape {shape}"
        ):
            run(mechanism)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, "a single float came back; .*use from_callable"),
        (np.float64(1.0), "a single float64 came back"),
        ("yes", "a single str came back"),
        (None, "a single NoneType came back"),
        (np.zeros(7), r"500 outputs were asked for but 7 came back, in an array of shape \(7,\)"),
        ({"a": np.zeros(7)}, "a dict of outputs must hold arrays of length 500, .*'a': 'an array of shape"),
        ({"a": 1.0}, "a dict of outputs must hold arrays of length 500, .*'a': 'float'"),
        ({}, "a dict of outputs must hold arrays of length 500"),
        ((np.zeros(3), np.zeros(3)), "500 outputs were asked for but 2 came back, in a tuple"),
    ],
)
def test_a_sampler_must_return_as_many_outputs_as_asked(value, message):
    with pytest.raises(MechanismError, match=message):
        run(from_sampler(lambda dataset, n, rng: value, name="sampler"))


def test_outputs_that_are_empty_are_refused():
    with pytest.raises(MechanismError, match="outputs are empty on both datasets"):
        run(from_sampler(lambda dataset, n, rng: np.zeros((n, 0))))


@pytest.mark.parametrize(
    "mechanism",
    [
        from_sampler(lambda dataset, n, rng: np.full(n, np.nan)),
        from_sampler(lambda dataset, n, rng: {"a": np.full(n, np.nan), "b": np.full((n, 2), np.nan)}),
        from_callable(lambda dataset: float("nan")),
        Stages(privatize=lambda rows, rng: rows * np.nan),
    ],
)
def test_nan_everywhere_on_both_sides_is_a_wiring_mistake(mechanism):
    with pytest.raises(MechanismError, match="every output is NaN or None on both datasets"):
        run(mechanism)


@pytest.mark.parametrize(
    "mechanism",
    [
        from_sampler(lambda dataset, n, rng: np.full(n, np.nan) if dataset else rng.laplace(size=n)),
        from_callable(lambda dataset: float("nan") if dataset else np.random.laplace()),
        from_callable(lambda dataset: None if dataset else np.random.laplace()),
        from_callable(lambda dataset: np.inf if dataset else np.random.laplace()),
    ],
)
def test_nan_none_or_infinity_on_one_side_is_a_violation(mechanism):
    assert run(mechanism).verdict is Verdict.VIOLATION


@pytest.mark.parametrize("wrap", ["sampler", "callable", "stages"])
def test_the_same_exception_on_both_sides_is_a_wiring_mistake(wrap):
    error = TypeError("missing argument")
    mechanism = {
        "sampler": from_sampler(fail_with(error)),
        "callable": from_callable(fail_with(error)),
        "stages": Stages(privatize=fail_with(error)),
    }[wrap]
    with pytest.raises(
        MechanismError, match=r"more than half .* are TypeError \(missing argument\)"
    ) as caught:
        run(mechanism)
    assert caught.value.__cause__ is error


def test_an_exception_in_few_outputs_of_both_sides_is_an_output():
    def sometimes(dataset):
        if np.random.random() < 0.3:
            raise RuntimeError
        return dataset + np.random.laplace()

    assert run(from_callable(sometimes)).verdict is Verdict.CONSISTENT


@pytest.mark.parametrize("wrap", ["sampler", "callable", "stages"])
def test_an_exception_on_one_side_is_a_violation_that_names_it(wrap):
    def sample(dataset, n, rng):
        if dataset:
            raise OverflowError
        return rng.laplace(size=n)

    def call(dataset):
        return sample(dataset, 1, np.random.default_rng())[0]

    def privatize(rows, rng):
        return sample(rows[0], len(rows), rng)

    mechanism = {
        "sampler": from_sampler(sample),
        "callable": from_callable(call),
        "stages": Stages(privatize=privatize),
    }[wrap]
    result = run(mechanism)
    assert result.violated
    assert "OverflowError" in result.attack or "a number" in result.attack or "1 values" in result.attack


def test_different_exceptions_on_the_two_sides_are_a_violation():
    def call(dataset):
        raise KeyError if dataset else ValueError

    result = run(from_callable(call))
    assert result.violated
    assert "KeyError" in result.attack or "ValueError" in result.attack


def test_objects_of_which_nothing_can_be_told_are_refused():
    class Answer:
        pass

    with pytest.raises(
        MechanismError, match="nothing but their type can be told of the outputs, which are Answer"
    ):
        run(from_callable(lambda dataset: Answer()))


def test_an_exception_at_the_first_draw_only_is_reported_as_irreproducible():
    calls = []

    def flaky(dataset, n, rng):
        calls.append(n)
        if len(calls) == 1:
            raise ConnectionError
        return dataset + rng.laplace(size=n)

    result = run(from_sampler(flaky))
    assert "ignores the rng" in dict(result.diagnostics)["reproducibility"]


def sometimes_raises(rate):
    def draw(dataset, n, rng):
        if rng.random() < rate:
            raise ConnectionError("lost")
        return rng.laplace(size=n)

    return draw


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.7])
@pytest.mark.parametrize("kind", ["sampler", "stages", "rows"])
def test_calls_that_fail_as_a_whole_now_and_then_are_never_taken_for_independent_trials(rate, kind):
    """Both sides have one law; a whole block of failures on one side would look like a certain event."""
    draw = sometimes_raises(rate)
    mechanism = {
        "sampler": from_sampler(draw),
        "stages": Stages(privatize=lambda rows, rng: draw(0, rows.size, rng).reshape(rows.shape)),
        "rows": Stages(
            lambda dataset, rng: np.array([dataset + rng.random()]),
            lambda rows, rng: draw(0, rows.size, rng).reshape(rows.shape),
            deterministic=False,
        ),
    }[kind]
    refused = 0
    for seed in range(8):
        try:
            assert not run(mechanism, n_trials=12_000, seed=seed).violated
        except MechanismError as error:
            refused += 1
            text = str(error)
            assert (
                "not independent trials" in text or "more than half of the outputs on both datasets" in text
            )
    assert refused >= (1 if rate == 0.02 else 6)


def test_a_call_that_fails_later_only_is_chained():
    def draw(dataset, n, rng):
        if n > 1000:
            raise MemoryError("too many")
        return rng.laplace(size=n)

    with pytest.raises(MechanismError, match=r"raised MemoryError: too many, and others did not") as caught:
        run(from_sampler(draw), n_trials=20_000)
    assert isinstance(caught.value.__cause__, MemoryError)


def test_an_unknown_norm_is_refused_before_anything_is_drawn():
    calls = []
    mechanism = Stages(privatize=lambda rows, rng: calls.append(rows), norm="l7")
    with pytest.raises(ValueError, match='norm must be one of "l0", "l1", "l2", "linf", got \'l7\''):
        run(mechanism)
    assert calls == []


def test_a_view_the_claim_does_not_cover_is_measured_and_never_gated():
    released = Stages(
        lambda dataset, rng: np.array([dataset * 50]),
        release=lambda noisy, rng: rng.integers(2, size=len(noisy)),
    )
    result = run(released, views={"white-box"})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.epsilon_lower > 1
    assert "does not cover the white-box view" in result.reason
    both = run(released, views={"white-box", "black-box"})
    assert both.verdict is Verdict.CONSISTENT
    assert [(view.view, view.gated) for view in both.views] == [("white-box", False), ("black-box", True)]
    assert both.views[0].epsilon_lower > 1


def test_without_release_both_views_are_the_same():
    result = run(Stages(), views={"white-box"})
    assert result.view == "white-box"
    assert result.views[0].gated


@pytest.mark.parametrize("dataset", [iter([1.0]), (x for x in [1.0]), map(float, "1"), zip([1.0])])
def test_a_dataset_that_one_call_uses_up_is_refused(dataset):
    with pytest.raises(TypeError, match=r"is used up by the first; give a list or an array"):
        run(from_sampler(lambda data, n, rng: sum(data) + rng.laplace(size=n)), (dataset, [2.0]))


@pytest.mark.parametrize(
    ("take", "words"),
    [
        (lambda data: [data.pop() for _ in range(len(data))], "have made the two datasets equal"),
        (lambda data: data.append(0.0), "has changed between calls"),
    ],
    ids=["used up", "growing"],
)
def test_a_mechanism_that_changes_its_dataset_is_refused(take, words):
    def consuming(data, n, rng):
        take(data)
        return sum(data) + rng.laplace(size=n)

    with pytest.raises(MechanismError, match=words):
        run(from_sampler(consuming), ([1.0], [1.0, 2.0]))


def test_a_dataset_may_be_sorted_in_place():
    def sorting(data, n, rng):
        data.sort()
        return data[-1] + rng.laplace(size=n)

    assert run(from_sampler(sorting), ([1.0, 0.0], [2.0, 0.0])).verdict is not Verdict.VIOLATION


def seeded_by_size(data, n, rng):
    return data + np.random.default_rng(n).laplace(size=n)


def seeded_lists(data, n, rng):
    return [[data + x] for x in np.random.default_rng(1).laplace(size=n).tolist()]


@pytest.mark.parametrize("fn", [seeded_by_size, seeded_lists])
def test_noise_that_is_seeded_anew_is_refused_also_if_it_depends_on_n(fn):
    with pytest.raises(MechanismError, match="its randomness is seeded anew in every call"):
        run(from_sampler(fn))


def rare(data, n, rng):
    """A key that is released once in 400 outputs, whose noise is right."""
    return np.where(rng.random(n) < 1 / 400, data + rng.laplace(size=n), np.nan)


@pytest.mark.parametrize("seed", range(4))
def test_outputs_that_are_nearly_always_missing_are_audited(seed):
    assert run(from_sampler(rare), n_trials=20_000, seed=seed).verdict is not Verdict.VIOLATION


def test_outputs_that_never_vary_are_remarked():
    result = run(from_callable(lambda data: data), n_trials=1_000)
    assert result.violated
    assert "no noise is added, or it is seeded anew in every call" in dict(result.diagnostics)["noise"]
    assert "noise" not in dict(run(from_sampler(lambda data, n, rng: rng.laplace(data, size=n))).diagnostics)
