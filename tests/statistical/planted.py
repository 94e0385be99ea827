"""Laws of two sides with a planted event: what an attack has to find."""

from __future__ import annotations

import numpy as np

H = 6000


def uniform(rng, n=H, d=1):
    return rng.random((n, d))


def threshold(rng):
    """0.9 against 0.1 above 0.7."""
    sides = []
    for rate in (0.9, 0.1):
        high = rng.random(H) < rate
        sides.append(np.where(high, rng.uniform(0.7, 1.0, H), rng.uniform(0.0, 0.7, H))[:, None])
    return *sides, lambda rows: rows[:, 0] > 0.7


def two_sided(rng):
    """Same mean, and both tails likelier on the canary."""
    return rng.normal(size=(H, 1)), 2.0 * rng.normal(size=(H, 1)), lambda rows: np.abs(rows[:, 0]) > 1.36


def middle(rng):
    """Rounding to a small interval inside the range."""
    reference, canary = uniform(rng), uniform(rng)
    inside = rng.random(H) < 0.4
    canary[inside] = 0.45 + 0.1 * canary[inside]
    return reference, canary, lambda rows: np.abs(rows[:, 0] - 0.5) <= 0.05


def atom(rng):
    """One value in 25 trials, in the middle of a continuous law."""
    reference, canary = uniform(rng), uniform(rng)
    canary[rng.random(H) < 0.04] = 0.25
    return reference, canary, lambda rows: rows[:, 0] == 0.25


def set_of_atoms(rng):
    """Even numbers are likelier on the reference, odd ones on the canary."""
    reference, canary = (rng.integers(0, 20, (H, 1)) * 2.0 for _ in range(2))
    canary[rng.random(H) < 0.8] += 1.0
    reference[rng.random(H) < 0.2] += 1.0
    return reference, canary, lambda rows: rows[:, 0] % 2 == 1


def nan_pattern(rng):
    """Two of the first four coordinates are NaN, each equally often: which two tells the sides apart."""
    pairs = np.array([[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]])
    sides = []
    for rate in (0.9, 0.1):
        rows = rng.random((H, 6))
        which = np.where(rng.random(H) < rate, rng.integers(0, 2, H), rng.integers(2, 6, H))
        np.put_along_axis(rows, pairs[which], np.nan, axis=1)
        sides.append(rows)
    return *sides, lambda rows: np.isnan(rows[:, 0]) & np.isnan(rows[:, 1])


def discrete_row(rng):
    """Three coin flips: their parity tells the sides apart, no two of them do."""
    reference, canary = rng.integers(0, 2, (H, 3)).astype(float), rng.integers(0, 2, (H, 3)).astype(float)
    for side, rows in enumerate((reference, canary)):
        rows[:, 2] = (rows[:, 0] + rows[:, 1] + (rng.random(H) < (0.9 if side else 0.1))) % 2
    return reference, canary, lambda rows: rows.sum(axis=1) % 2 == 1


def difference(rng):
    """The same wide noise on both coordinates hides a shift of one of them."""
    sides = []
    for shift in (0.0, 1.0):
        common = 100 * rng.normal(size=H)
        sides.append(np.column_stack([common, common + shift + 0.2 * rng.normal(size=H)]))
    return *sides, lambda rows: rows[:, 1] - rows[:, 0] > 0.5


def exact_difference(rng):
    """Wide noise on one coordinate; the other repeats it, exactly or nearly."""
    sides = []
    for step in (0.0, 1.0):
        common = np.floor(1e6 * rng.random(H))
        sides.append(np.column_stack([common, common + step * rng.choice([-1.0, 1.0], H)]))
    return *sides, lambda rows: rows[:, 1] == rows[:, 0]


def many_coordinates(rng):
    """A small shift of each of 40 coordinates."""
    return rng.normal(size=(H, 40)), rng.normal(size=(H, 40)) + 0.4, lambda rows: rows.sum(axis=1) > 8


def largest(rng):
    """One coordinate, never the same, is large on the canary."""
    reference, canary = rng.normal(size=(H, 30)), rng.normal(size=(H, 30))
    canary[np.arange(H), rng.integers(0, 30, H)] += 8
    return reference, canary, lambda rows: rows.max(axis=1) > 5


def infinities(rng):
    """Infinite outputs on the reference."""
    reference, canary = uniform(rng), uniform(rng)
    reference[rng.random(H) < 0.1] = -np.inf
    return reference, canary, lambda rows: rows[:, 0] == -np.inf


def integers(rng):
    """Whole numbers among the noise, more of them on the canary."""
    sides = []
    for rate in (0.1, 0.5):
        rows = rng.laplace(0, 5, (H, 1))
        whole = rng.random(H) < rate
        rows[whole] = np.rint(rows[whole])
        sides.append(rows)
    return *sides, lambda rows: rows[:, 0] == np.rint(rows[:, 0])


def grid(rng):
    """Even numbers on the reference, all integers on the canary; thousands of values."""
    reference = 2.0 * rng.integers(-2_000, 2_000, (H, 1))
    return reference, 1.0 * rng.integers(-4_000, 4_000, (H, 1)), lambda rows: rows[:, 0] % 2 == 1


def support(rng):
    """Of 80 coordinates one is more often not zero."""
    sides = []
    for rate in (0.1, 0.5):
        rows = rng.normal(size=(H, 80)) * (rng.random((H, 80)) < 0.1)
        rows[:, 60] = rng.normal(size=H) * (rng.random(H) < rate)
        sides.append(rows)
    return *sides, lambda rows: rows[:, 60] != 0


def how_many(rng):
    """The number of coordinates that are not zero, whichever they are."""
    sides = [rng.normal(size=(H, 80)) * (rng.random((H, 80)) < share) for share in (0.3, 0.5)]
    return *sides, lambda rows: (rows != 0).sum(axis=1) > 32


def wide_spread(rng):
    """Of 80 coordinates one is noisier."""
    reference, canary = rng.normal(size=(H, 80)), rng.normal(size=(H, 80))
    canary[:, 70] *= 5
    return reference, canary, lambda rows: np.abs(rows[:, 70]) > 2.5


def common_noise(rng):
    """The same wide noise on all of 80 coordinates hides a shift of one of them."""
    sides = []
    for shift in (0.0, 3.0):
        rows = rng.normal(size=(H, 80)) + 100 * rng.normal(size=(H, 1))
        rows[:, 50] += shift
        sides.append(rows)
    return *sides, lambda rows: rows[:, 50] - np.median(rows, axis=1) > 1.5


def correlation(rng):
    """Two of eight coordinates move together on the canary."""
    reference, canary = rng.normal(size=(H, 8)), rng.normal(size=(H, 8))
    canary[:, 5] = canary[:, 1] + 0.1 * rng.normal(size=H)
    return reference, canary, lambda rows: np.abs(rows[:, 5] - rows[:, 1]) < 0.3


def proportion(rng):
    """One coordinate is a fixed multiple of another, more often on the canary."""
    sides = []
    for rate in (0.1, 0.5):
        rows = rng.normal(size=(H, 6))
        rows[:, 4] = np.where(rng.random(H) < rate, 1.5 * rows[:, 2], 1.5 * rows[:, 2] + 0.3 * rows[:, 4])
        sides.append(rows)
    return *sides, lambda rows: rows[:, 4] == 1.5 * rows[:, 2]


def anywhere(rng):
    """One value shows on the canary, at any of 40 coordinates."""
    reference, canary = rng.normal(size=(H, 40)), rng.normal(size=(H, 40))
    told = np.flatnonzero(rng.random(H) < 0.2)
    canary[told, rng.integers(0, 40, len(told))] = 1.37
    return reference, canary, lambda rows: (rows == 1.37).any(axis=1)


def twice(rng):
    """Some value occurs twice in an output, more often on the canary."""
    sides = []
    for rate in (0.1, 0.5):
        rows = rng.normal(size=(H, 10))
        where = np.flatnonzero(rng.random(H) < rate)
        pair = np.argsort(rng.random((len(where), 10)), axis=1)[:, :2]
        rows[where, pair[:, 0]] = rows[where, pair[:, 1]]
        sides.append(rows)
    return *sides, lambda rows: (np.diff(np.sort(rows, axis=1), axis=1) == 0).any(axis=1)


def sparse_shift(rng):
    """Three of 100 coordinates are shifted a little."""
    reference, canary = rng.laplace(size=(H, 100)), rng.laplace(size=(H, 100))
    canary[:, [7, 50, 93]] += 1.0
    return reference, canary, lambda rows: np.clip(rows[:, [7, 50, 93]], 0, 1).sum(axis=1) > 1.5


def remainder(rng):
    """Whole noise on values that are not whole: their fractions stay."""
    sides = [np.floor(1e5 * rng.normal(size=(H, 1))) + fraction for fraction in (0.25, 0.6)]
    return *sides, lambda rows: np.abs(rows[:, 0] % 1 - 0.6) < 1e-6


def short_seed(rng):
    """Three hundred outputs of each side, all different, in no order."""
    values = np.random.default_rng(0).normal(size=(600, 1))
    sides = [values[side::2][rng.integers(0, 300, H)] for side in (0, 1)]
    return *sides, lambda rows: np.isin(rows[:, 0], values[1::2, 0])


def exact_relation(rng):
    """Six coordinates that add up to nothing on the reference."""
    sides = [rng.normal(size=(H, 6)) for _ in range(2)]
    sides[0][:, 5] = 0.05 * rng.normal(size=H) - sides[0][:, :5].sum(axis=1)
    sides[1][:, 5] *= np.sqrt(5.0)
    return *sides, lambda rows: np.abs(rows.sum(axis=1)) < 0.2


PLANTED = [
    threshold,
    two_sided,
    middle,
    atom,
    set_of_atoms,
    nan_pattern,
    discrete_row,
    difference,
    exact_difference,
    many_coordinates,
    largest,
    infinities,
    integers,
    grid,
    support,
    how_many,
    wide_spread,
    common_noise,
    correlation,
    proportion,
    anywhere,
    twice,
    sparse_shift,
    remainder,
    short_seed,
    exact_relation,
]
