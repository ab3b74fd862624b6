"""Releases of the local model made by hand: folders of estimates from reports, without any contributor."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import by_hand
import numpy as np

from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import ReportLaw
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.publishing import _card as card
from dphist_pipeline.publishing import _deployment as deployment
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.spec.axes import domain_of

Encoding = Literal["symmetric", "optimized", "grr"]
ENCODINGS: tuple[Encoding, ...] = ("symmetric", "optimized", "grr")
AGE: dict[str, Any] = {"column": "age", "edges": [0, 6, 18, 30, 45, 60, 75, 90]}
DAY: dict[str, Any] = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-03-30"}
ATOMS = [1, 3, 2, 1, 4, 1, 2]
COUNTS = [40, 900, 2, 350, 0, 610, 77]


def chances(encoding: Encoding, epsilon: float, intervals: int) -> tuple[float, float]:
    """The probabilities of a 1 where a value lies, and elsewhere."""
    if encoding == "symmetric":
        return 1 / (1 + math.exp(-epsilon / 2)), 1 / (1 + math.exp(epsilon / 2))
    if encoding == "optimized":
        return 0.5, 1 / (1 + math.exp(epsilon))
    others = math.exp(epsilon) + intervals
    return math.exp(epsilon) / others, 1 / others


def law(encoding: Encoding, reports: int, epsilon: float, intervals: int, share: float = 1) -> ReportLaw:
    """The law of estimates, from the variance of what a report says."""
    p, q = chances(encoding, epsilon, intervals)
    gap = p - q
    if encoding == "grr":
        alpha, beta, gamma, delta = q / gap**2, (q / gap) ** 2, (1 - gap) / gap, -2 * q / gap
    else:
        alpha, beta, gamma, delta = q * (1 - q) / gap**2, 0.0, (p * (1 - p) - q * (1 - q)) / gap**2, 0.0
    often = reports / share**2
    return ReportLaw(alpha * often, beta * often, (gamma + 1 - share) / share, delta / share, 1 / (gap * share))


def estimate(
    axes: list[dict[str, Any]],
    encoding: Encoding = "symmetric",
    epsilon: float = 2.0,
    reports: int = 2500,
    share: float = 1,
    off: float = 0.0,
) -> Estimate:
    """Estimates from reports that lie near the counts of a town, some below 0; published `off` beside them."""
    domain = domain_of(axes)
    atoms = np.resize(np.array(ATOMS), domain.cells)
    found = law(encoding, reports, epsilon, int(atoms.sum()), share)
    wave = np.cos(np.arange(domain.cells) * 2.4)
    values = np.resize(np.array(COUNTS, dtype=np.float64), domain.cells) + np.round(wave * 23, 3)
    charges = (("reports", Fraction(str(epsilon))),)
    return Estimate(domain, values + off, charges, ReportedCells(values, atoms, found))


def publish(
    public: Path,
    made: Estimate,
    axes: list[dict[str, Any]],
    release: str = "town_age",
    period: str = "2026-03-02",
    revision: int = 1,
) -> Release:
    """Writes the files of a release where a store would have them; its page is tested elsewhere."""
    facts = {
        **{"model": "local", "account": None, "privacy_unit": "contributor", "neighbours": "local"},
        **{"sensitivity": None, "mechanism": "chp", "settings": {"encoding": "symmetric"}},
        **{"ledger": None, "reports": {"accepted": 2500, "refused": {}}},
    }
    empty = mock.Mock(return_value="")
    with (
        mock.patch.multiple(card, release_card=empty, is_smoothed=empty),
        mock.patch.object(deployment, "deployment_yaml", empty),
    ):
        return by_hand.publish(public, made, axes, release, period, revision, **facts)
