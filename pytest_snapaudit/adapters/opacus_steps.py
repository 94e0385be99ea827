"""Opacus: whole steps of an optimizer, with everything ``make_private`` has set up, as a sampler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pytest_snapaudit.adapters.opacus_optimizers import (
    Backward,
    batches,
    clear,
    clipped,
    fill,
    flat,
    grad_rows,
    require_optimizer,
    seed_generator,
    stand_in_for,
)
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.mechanism import Sampler, from_sampler

Step = tuple[Any, Backward | None, Any]
"""An optimizer, its ``backward`` or None, and its data loader or None."""


def sample_steps(
    make: Callable[[Any], Step],
    *,
    claim: PrivacyClaim | None = None,
    batched: bool = True,
    name: str | None = None,
) -> Sampler[Any]:
    """Whole steps of an Opacus optimizer, with everything ``make_private`` has set up for a dataset.

    An output is the gradient that the wrapped optimizer is asked to step with, after division by the expected batch
    size, and the clipping bound if it is adaptive. Every trial samples a batch of its own; a trial whose step raises
    (on an empty batch, for example) is a row of NaN.

    Args:
        make: ``make(dataset)`` returns ``(optimizer, backward, data_loader)``, as ``make_private`` gives them for that
            dataset. The model must have the same initial parameters every time: copy one. Without a data loader
            (None), ``backward(dataset)`` is called with the dataset itself.
        claim: used when the test states none.
        batched: take the steps on equal batches together: forward, backward and clipping once, then ``step`` on
            parameters with one more axis. False, and an adaptive clipping bound, take them one by one, at about
            half a millisecond each: state ``n_trials``.
        name: printed in reports.

    Raises:
        TypeError: ``make`` is no function, or returns something else.
        MechanismError: in the audit, if ``make`` returned models whose initial parameters differ.
    """
    if not callable(make):
        msg = f"sample_steps: make must be a function of a dataset, got {make!r}."
        raise TypeError(msg)
    initial: list[NDArray[Any]] = []

    def steps(dataset: Any, n: int, rng: Generator) -> NDArray[Any]:
        optimizer, backward, loader = make(dataset)
        require_optimizer("sample_steps", optimizer)
        start = flat([p.detach() for p in optimizer.params])
        if not initial:
            initial.append(start)
        elif not np.array_equal(initial[0], start):
            msg = "sample_steps: make returned other initial parameters than before; give it a copy of one model."
            raise MechanismError(msg)
        trials: dict[tuple[int, ...], list[int]] = {}
        for trial, indices in enumerate(batches(loader, dataset, n, rng)):
            trials.setdefault(indices, []).append(trial)
        together = batched and not hasattr(optimizer, "unclipped_num")
        take = _steps_together if together else _steps_one_by_one
        outcomes: dict[tuple[int, ...], NDArray[Any] | Exception] = {}
        for indices, these in trials.items():
            try:
                batch = dataset if loader is None else loader.collate_fn([dataset[i] for i in indices])
                outcomes[indices] = take(optimizer, backward, batch, len(these), rng)
            except Exception as raised:
                outcomes[indices] = raised
                optimizer, backward, _ = make(dataset)  # what the failure left behind belongs to it
        return _gathered(trials, outcomes, n)

    return from_sampler(steps, name=name or "sample_steps", claim=claim)


def _gathered(
    trials: dict[tuple[int, ...], list[int]], outcomes: dict[tuple[int, ...], Any], n: int
) -> NDArray[Any]:
    """(n, d) outputs in the order of the trials; NaN where a step raised."""
    widths = {rows.shape[1] for rows in outcomes.values() if not isinstance(rows, Exception)}
    if not widths:
        raise next(iter(outcomes.values()))
    gathered = np.full((n, *widths), np.nan)
    for indices, these in trials.items():
        if not isinstance(outcomes[indices], Exception):
            gathered[these] = outcomes[indices]
    return gathered


def _steps_together(optimizer: Any, backward: Any, batch: Any, n: int, rng: Generator) -> NDArray[Any]:
    """``step`` for ``n`` trials on one batch, whose clipped sum is computed once."""
    sums, grad_samples = clipped(optimizer, backward, batch)
    stand_in = stand_in_for(optimizer, np.broadcast_to(sums, (n, len(sums))), rng)
    for parameter, grad_sample in zip(stand_in.params, grad_samples, strict=True):
        parameter.grad_sample = grad_sample
    stand_in.clip_and_accumulate = stand_in.accumulate = lambda: None
    stand_in.step_hook = None
    return _stepped_with(stand_in, n)


def _stepped_with(optimizer: Any, n: int) -> NDArray[Any]:
    """(n, d) gradients that ``step`` hands to the wrapped optimizer, or leaves behind if it is not asked to step."""
    wrapped = optimizer.original_optimizer
    asked = _Asked(wrapped.param_groups, lambda: grad_rows(optimizer, n))
    optimizer.original_optimizer = asked
    try:
        optimizer.step()
    finally:
        optimizer.original_optimizer = wrapped
    return grad_rows(optimizer, n) if asked.rows is None else asked.rows


@dataclass
class _Asked:
    """Stands for the wrapped optimizer, and keeps the gradients it is asked to step with instead of stepping."""

    param_groups: list[dict[str, Any]]
    read: Callable[[], NDArray[Any]]
    rows: NDArray[Any] | None = None

    def step(self, closure: Any = None) -> None:
        """Keep what the parameters' gradients are now."""
        del closure
        self.rows = self.read()


def _steps_one_by_one(optimizer: Any, backward: Any, batch: Any, n: int, rng: Generator) -> NDArray[Any]:
    """``step``, unabridged, for ``n`` trials on one batch; its settings are put back after each."""
    fill(optimizer, backward, batch)
    gradients = [(p.grad, getattr(p, "grad_sample", None)) for p in optimizer.params]
    seed_generator(optimizer, rng)
    settings = dict(vars(optimizer))
    rows = []
    for _ in range(n):
        vars(optimizer).update(settings)
        optimizer.step_hook = None  # accountants are not charged for trials
        for parameter, (grad, grad_sample) in zip(optimizer.params, gradients, strict=True):
            parameter.summed_grad = None
            parameter.grad = None if grad is None else grad.clone()
            parameter.grad_sample = None if grad_sample is None else grad_sample.detach()
        row = _stepped_with(optimizer, 1)[0]
        rows.append(
            np.append(row, float(optimizer.max_grad_norm)) if hasattr(optimizer, "unclipped_num") else row
        )
    vars(optimizer).update(settings)
    clear(optimizer)
    return np.stack(rows)
