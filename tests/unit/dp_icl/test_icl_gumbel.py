"""The exponential mechanism in closed form."""

import math

import numpy as np
import pytest

from dp_icl.gumbel import GumbelNoise, log_selection_probabilities, selection_epsilon


def test_selection_probabilities_are_a_softmax():
    found = np.exp(log_selection_probabilities([[0.0, math.log(2), math.log(3)], [5.0, 5.0, 5.0]], 1.0))
    assert found == pytest.approx(np.array([[1 / 6, 2 / 6, 3 / 6], [1 / 3, 1 / 3, 1 / 3]]), rel=1e-14)


def test_a_larger_scale_flattens_them():
    found = np.exp(log_selection_probabilities([0.0, 2 * math.log(4)], 2.0))
    assert found == pytest.approx([0.2, 0.8], rel=1e-14)


def test_far_apart_utilities_keep_their_logarithms():
    found = log_selection_probabilities([0.0, -5000.0, 5000.0], 1.0)
    assert found == pytest.approx([-5000.0, -10000.0, 0.0], rel=1e-14)


def test_the_epsilon_of_a_pair_is_the_largest_log_ratio():
    # softmax [1/2, 1/2] against [1/4, 3/4]: ratios 2 and 1.5
    assert selection_epsilon([0.0, 0.0], [0.0, math.log(3)], 1.0) == pytest.approx(math.log(2), rel=1e-14)
    assert selection_epsilon([0.0, math.log(3)], [0.0, 0.0], 1.0) == pytest.approx(math.log(2), rel=1e-14)
    assert selection_epsilon([1.0, 2.0], [4.0, 5.0], 1.0) == pytest.approx(0.0, abs=1e-14)


def test_the_utilities_that_the_paper_prints():
    """Table 11, utilities of TREC; the label "yes" tells the two apart."""
    reference, canary = [-28.76, -5.15], [-25.11, -10.13]
    logit = [np.subtract(*utilities) for utilities in (canary, reference)]
    assert logit == pytest.approx([-14.98, -23.61])
    assert selection_epsilon(reference, canary, 1.0) == pytest.approx(8.63, abs=1e-6)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_out_of_range_is_refused(scale):
    with pytest.raises(ValueError, match="scale must be a finite number above 0"):
        GumbelNoise(scale)
    with pytest.raises(ValueError, match="scale must be a finite number above 0"):
        selection_epsilon([0.0, 1.0], [1.0, 0.0], scale)


def test_utilities_must_be_finite():
    with pytest.raises(ValueError, match="utilities must be finite"):
        selection_epsilon([0.0, -math.inf], [0.0, 0.0], 1.0)
    with pytest.raises(TypeError, match="scale must be a real number, got None"):
        GumbelNoise(None)
