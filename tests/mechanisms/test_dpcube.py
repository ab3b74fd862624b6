"""DPCube: how its two views of the cells are put together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.mechanisms.dpcube import DPCube, NoiseMultiple, PaperVariance
from dphist_pipeline.solvers.boxes.joined_boxes import Noise, joined_means, twofold_boxes
from dphist_pipeline.solvers.boxes.kd_boxes import kd_boxes

# Two halves, each of unlike cells.
COUNTS = np.concatenate([np.arange(12), 500 + 20 * np.arange(12)]).reshape(4, 6)


def released(counts, sensitivity=1, **settings):
    exact = np.ascontiguousarray(counts, dtype=np.int64)
    private_counts = PrivateCounts(Domain.from_shape(exact.shape), sensitivity, lambda: exact.ravel())
    return mechanisms.build("dpcube", settings).release(private_counts, Budget(Fraction(1)))


@pytest.mark.parametrize("share", ["1/5", "1/2", "9/10"])
def test_least_squares_explains_cells_and_sums_by_the_inverse_of_their_variances(share):
    estimate = released(COUNTS, estimation="least_squares", structure_share=share, max_depth=1)
    cells, sums, boxes = estimate.unbiased, estimate.sums, estimate.groups.ravel()
    assert sums.values.size == 2
    membership = (boxes == np.arange(2)[:, None]).astype(float)
    views = np.vstack([np.eye(boxes.size) / cells.variance**0.5, membership / sums.variance**0.5])
    seen = np.concatenate([cells.values.ravel() / cells.variance**0.5, sums.values / sums.variance**0.5])
    best = np.linalg.lstsq(views, seen, rcond=None)[0]
    assert np.allclose(estimate.values.ravel(), best)


@pytest.mark.parametrize("sensitivity", [1, 7])
def test_boxes_are_found_for_the_noise_that_their_sums_get(sensitivity, monkeypatch):
    found, known = DPCube._boxes, []
    monkeypatch.setattr(DPCube, "_boxes", lambda self, *given: known.append(given) or found(self, *given))
    estimate = released(COUNTS, sensitivity)
    assert known == [(estimate.unbiased, estimate.sums.variance)]


@pytest.mark.parametrize("threshold", ["greedy", "pruned", 100.0])
def test_a_box_of_alike_cells_is_spread_evenly(threshold):
    estimate = released(np.repeat([[3], [900]], 50, axis=1), threshold=threshold)
    assert np.array_equal(estimate.values, (estimate.sums.values / estimate.sums.sizes)[estimate.groups])


def test_boxes_that_one_rule_found_share_a_mean_if_sums_show_no_difference():
    shared = 0
    for _ in range(40):
        estimate = released(np.full((4, 4, 4), 7))
        boxes = twofold_boxes(estimate.unbiased.values, estimate.unbiased.variance, estimate.sums.variance, 40)
        assert np.array_equal(estimate.groups, boxes.boxes)
        noise = Noise(estimate.unbiased.variance, estimate.sums.variance)
        means, _ = joined_means(estimate.unbiased.values, boxes, estimate.sums.values, noise)
        assert np.array_equal(estimate.values, means[estimate.groups])
        shared += len(set(estimate.values.ravel().tolist())) < estimate.sums.values.size
    assert shared  # one in three does


@pytest.mark.parametrize("shape", [(40,), (6, 7), (2, 3, 4), (2, 2, 3, 2), (2, 2, 2, 2, 3), (2, 2, 2, 2, 2, 2)])
@pytest.mark.parametrize("estimation", ["uniform", "least_squares"])
def test_serves_one_to_six_axes(shape, estimation):
    estimate = released(np.arange(np.prod(shape)).reshape(shape), estimation=estimation)
    assert estimate.values.shape == shape
    assert estimate.epsilon == 1


def test_seven_axes_are_refused():
    with pytest.raises(mechanisms.DomainRefused, match="up to 6 axes"):
        mechanisms.build("dpcube", {}).check(Domain.from_shape((1,) * 7), 1, Fraction(1))


@pytest.mark.parametrize("written", [{"paper": 900}, {"paper": "900"}, "{paper: 900}"])
def test_the_papers_threshold_keeps_the_noise_in_the_variance_of_a_boxs_cells(written):
    estimate = released(COUNTS, threshold=written)
    cells, noise = estimate.unbiased.values, estimate.unbiased.variance
    boxes = kd_boxes(cells, 0.0, 1.0, 900.0, 40)
    assert np.array_equal(estimate.groups, boxes) and boxes.max() > 0
    assert mechanisms.build("dpcube", {"threshold": written}) == DPCube(threshold=PaperVariance(900.0))
    # The conversion of the card: our number is the paper's less the variance of the noise.
    assert np.array_equal(boxes, kd_boxes(cells, noise, 1.0, 900.0 - noise, 40))


def test_the_papers_threshold_stops_in_noise_where_it_is_below_the_noise():
    noisy = released(np.zeros((8, 8)), threshold={"paper": 0.0})
    plain = released(np.zeros((8, 8)), threshold=10.0)
    assert noisy.sums.values.size > 4 > plain.sums.values.size  # the noise of a cell has variance 8


@pytest.mark.parametrize("written", [{"noise": 0.7}, {"noise": "0.7"}, "{noise: 0.7}"])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_a_threshold_by_the_noise_is_the_papers_one_at_every_epsilon(written, epsilon):
    built = mechanisms.build("dpcube", {"threshold": written})
    assert built == DPCube(threshold=NoiseMultiple(0.7))
    assert mechanisms.settings_of(built)["threshold"] == {"noise": 0.7}
    private_counts = PrivateCounts(Domain.from_shape(COUNTS.shape), 1, lambda: COUNTS.ravel())
    estimate = built.release(private_counts, Budget(Fraction(epsilon)))
    cells, noise = estimate.unbiased.values, estimate.unbiased.variance
    assert np.array_equal(estimate.groups, kd_boxes(cells, 0.0, 1.0, 0.7 * noise, 40))


def test_noise_alone_is_cut_up_below_its_own_variance_and_not_above():
    many, few = (released(np.zeros((16, 16)), threshold={"noise": part}).sums.values.size for part in (0.5, 1.5))
    assert many > 16 > few


def test_the_card_gives_the_conversion_from_the_papers_threshold():
    (told,) = [one for one in mechanisms.settings("dpcube") if one.name == "threshold"]
    assert "{paper: X} is X - v" in told.meaning and "1 / (2·sinh²(e/2))" in told.meaning
    e = 0.5  # half of an epsilon of 1
    assert np.isclose(released(COUNTS).unbiased.variance, 1 / (2 * np.sinh(e / 2) ** 2))


@pytest.mark.parametrize(
    "threshold", ["otto", -1, {"paper": -1}, {"papers": 1}, {"paper": 1, "noise": 2}, {"noise": -1}, {}, None]
)
def test_a_threshold_of_no_kind_is_refused_with_the_kinds(threshold):
    with pytest.raises(
        mechanisms.BadSetting, match=r"'threshold': should be `auto`.* \{noise: NUMBER\} or \{paper: NUMBER\}$"
    ):
        mechanisms.build("dpcube", {"threshold": threshold})
