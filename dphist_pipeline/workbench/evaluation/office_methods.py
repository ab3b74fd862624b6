"""Methods of disclosure control without ε, as offices use them: cell keys, random rounding, suppression, swapping.

For public counts in comparisons only. Their draws come from NumPy's generator, and none of them bounds what a table
tells about a person, so nothing here may publish.

Sources: cell keys: Fraser, Wooton (UNECE 2005); Marley, Leaver (ISI 2011). Perturbation tables of maximum entropy:
Giessing (Privacy in Statistical Databases 2016). Suppression and swapping: Hundepool et al., Statistical Disclosure
Control (2012), chapters 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import Refused, did_you_mean

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]
Chosen = NDArray[np.bool_]
MARK = " (no ε)"  # after the names of these methods, wherever one reads them
WITHOUT_EPSILON = "no promise against"
MOST_NOISE = 50


def bad_office_method(problem: str) -> Refused:
    """The text names no method without ε, or one with other settings than it has."""
    return Refused(f"--with: {problem}", code="bad_office_method")


@dataclass(frozen=True)
class CellKey:
    """Cell keys: equal sets of records get equal noise, by a secret key of each record.

    Attributes:
        most: largest noise, D.
        variance: of the noise, V.
        small: published counts are never 1 to this number, js.
    """

    most: int = 5
    variance: float = 3.0
    small: int = 2
    against: ClassVar[str] = "somebody who subtracts tables that differ by one person, or averages many tables"

    def __post_init__(self) -> None:
        """Refuses tables that do not exist."""
        if not (0 <= self.small < self.most <= MOST_NOISE and 0 < self.variance <= self.most**2):
            raise bad_office_method(
                f"cell_key needs 0 <= small < most <= {MOST_NOISE} and a variance above 0 and up to most squared"
            )

    def publish(self, exact: Counts, draws: np.random.Generator) -> Numbers:
        """Perturbed counts. The sum of one or more uniform keys modulo 1 is uniform, so each cell draws its own."""
        table = perturbation_table(self.most, self.variance, self.small)
        return perturbed(exact, draws.random(exact.shape), table).astype(np.float64)


@dataclass(frozen=True)
class Rounding:
    """Unbiased random rounding of each cell by itself to a multiple of `base`."""

    base: int = 3
    against: ClassVar[str] = "somebody who averages tables, or adds up cells whose margin is rounded by itself"

    def __post_init__(self) -> None:
        """Refuses a base that rounds nothing."""
        if not 2 <= self.base <= 1000:
            raise bad_office_method("rounding needs a base from 2 to 1000")

    def publish(self, exact: Counts, draws: np.random.Generator) -> Numbers:
        """Rounded counts."""
        return rounded(exact, self.base, draws).astype(np.float64)


@dataclass(frozen=True)
class Suppression:
    """Hides counts from 1 to below a threshold, and more cells so that no margin gives one back.

    What is measured is what a reader can fill in: the hidden cells share what the margins leave.
    """

    below: int = 5
    against: ClassVar[str] = "somebody who knows other persons of a cell, or subtracts tables; shown cells are exact"

    def __post_init__(self) -> None:
        """Refuses a threshold that hides nothing."""
        if not 2 <= self.below <= 1_000_000:
            raise bad_office_method("suppression needs a threshold `below` from 2 to 1000000")

    def publish(self, exact: Counts, draws: np.random.Generator) -> Numbers:
        """Shown counts, and the reader's guess of the hidden ones; draws nothing."""
        return filled(exact, suppressed(exact, self.below))


OfficeMethod = CellKey | Rounding | Suppression
METHODS: dict[str, type[OfficeMethod]] = {"cell_key": CellKey, "rounding": Rounding, "suppression": Suppression}


def parse_office_methods(texts: Sequence[str]) -> dict[str, OfficeMethod]:
    """Methods by the text that named them, from `NAME,NAME` or `NAME:SETTING=VALUE,SETTING=VALUE`.

    Raises:
        Refused: there is no such method or setting, or a value does not serve.
    """
    names = list[str]()
    for piece in (piece.strip() for text in texts for piece in text.split(",")):
        if names and "=" in piece and ":" not in piece:
            names[-1] += f",{piece}"
        else:
            names.append(piece)
    return {name: _parsed(name) for name in names}


def _parsed(text: str) -> OfficeMethod:
    name, colon, rest = text.partition(":")
    if name not in METHODS:
        raise bad_office_method(f"there is no method {name[:60]!r}. {did_you_mean(name, METHODS)}")
    kinds = {field.name: float if field.type == "float" else int for field in fields(METHODS[name])}
    settings = dict[str, float]()
    for setting, _, value in (pair.partition("=") for pair in rest.split(",") if colon):
        if setting not in kinds:
            raise bad_office_method(f"{name} has no setting {setting[:60]!r}. {did_you_mean(setting, kinds)}")
        try:
            settings[setting] = kinds[setting](value)
        except ValueError:
            raise bad_office_method(f"{name}: {setting} must be a number, not {value[:60]!r}") from None
    return METHODS[name](**settings)  # type: ignore[arg-type]


def perturbation_table(most: int, variance: float, small: int = 0) -> Numbers:
    """Probabilities of the noise of each count: of maximum entropy, with mean 0 and the wanted variance.

    Where a count is so small that the variance cannot be reached (results below 0 and in 1..small are excluded), the
    nearest one that can.

    Args:
        most: largest noise.
        small: no result lies in 1..small.

    Returns:
        Shape (counts, 2 · most + 1): a row for each count from 0; the last one is that of all larger counts. Column v
        is the probability of the noise v - most. A count of 0 gets none.
    """
    rows = most + small + (2 if small else 1)
    table = np.zeros((rows, 2 * most + 1))
    table[0, most] = 1
    noise = np.arange(-most, most + 1)
    for count in range(1, rows):
        result = count + noise
        possible = (result >= 0) & ((result == 0) | (result > small))
        table[count, possible] = _of_most_entropy(noise[possible].astype(np.float64), variance)
    return table


def _of_most_entropy(values: Numbers, variance: float) -> Numbers:
    """Probabilities of values around 0, in rising order: mean 0, the variance nearest to the wanted, most entropy."""
    largest = -values[0] * values[-1]
    low, high = values[values <= 0][-1], values[values >= 0][0]
    for reached, ends in ((variance >= largest, (values[0], values[-1])), (variance <= -low * high, (low, high))):
        if reached:
            left, right = ends
            share = right / (right - left) if right > left else 1.0
            return np.where(values == left, share, np.where(values == right, 1 - share, 0.0))
    # The dual of the problem: p ∝ exp(a·v + b·v²). It is convex: Newton's steps, halved where too long, find a and b.
    features, wanted, at = np.stack([values, values**2]), np.array([0.0, variance]), np.zeros(2)

    def dual(place: Numbers) -> tuple[float, Numbers]:
        powers = place @ features
        weights = np.exp(powers - powers.max())
        return float(np.log(weights.sum()) + powers.max() - place @ wanted), weights / weights.sum()

    value, shares = dual(at)
    for _ in range(200):
        means = features @ shares
        spread = (features * shares) @ features.T - np.outer(means, means)
        step = np.linalg.solve(spread + 1e-12 * np.eye(2), wanted - means)
        length = 1.0
        while length > 1e-12 and dual(at + length * step)[0] > value:
            length /= 2
        if np.abs(means - wanted).max() < 1e-12 or length <= 1e-12:
            break
        at = at + length * step
        value, shares = dual(at)
    return shares


def cell_keys(record_keys: Numbers, cells: Counts, size: int) -> Numbers:
    """The key of each cell: the sum of its records' keys modulo 1; 0 for an empty cell.

    Args:
        record_keys: uniform in [0, 1), one a record.
        cells: the cell of each record, from 0 to below `size`.
    """
    sums: Numbers = np.bincount(cells, weights=record_keys, minlength=size).astype(np.float64)
    return sums % 1


def perturbed(exact: Counts, keys: Numbers, table: Numbers) -> Counts:
    """Counts with the noise that each cell's key looks up.

    Args:
        keys: in [0, 1), shape of `exact`.
        table: see `perturbation_table`.
    """
    ends, most = np.cumsum(table, axis=1), table.shape[1] // 2
    rows, noise = np.minimum(exact, len(table) - 1), np.zeros_like(exact)
    for row in range(len(table)):
        here = rows == row
        ends[row, np.flatnonzero(table[row])[-1] :] = 1  # whatever the sum of floats is
        noise[here] = np.searchsorted(ends[row], keys[here], side="right") - most
    return exact + noise


def rounded(exact: Counts, base: int, draws: np.random.Generator) -> Counts:
    """Counts rounded to a multiple of `base`, up or down at random, so that the mean is the count."""
    over = exact % base
    return exact - over + base * (draws.random(exact.shape) * base < over)


def suppressed(exact: Counts, below: int) -> Chosen:
    """Which cells are hidden, if the sums along each axis are published, too.

    First all counts from 1 to below the threshold. Then, while a line of cells along an axis has one hidden cell, or
    several that add up to less than the threshold, its smallest shown cell, empty ones last. That no line gives a cell
    back is sure wherever a line has two cells; that no system of lines narrows one down is not.
    """
    hidden: Chosen = (exact > 0) & (exact < below)
    while True:
        before = hidden.copy()
        for axis in range(exact.ndim):
            number, held = hidden.sum(axis=axis, keepdims=True), (exact * hidden).sum(axis=axis, keepdims=True)
            open_lines = (number > 0) & ((number == 1) | (held < below)) & (number < exact.shape[axis])
            price = np.where(hidden, math.inf, np.where(exact == 0, 1e300, exact))
            chosen = np.argmin(price, axis=axis, keepdims=True)
            now = np.take_along_axis(hidden, chosen, axis) | open_lines
            np.put_along_axis(hidden, chosen, now, axis)
        if (hidden == before).all():
            return hidden


def filled(exact: Counts, hidden: Chosen, rounds: int = 50) -> Numbers:
    """Shown cells, and hidden ones as the published sums along each axis leave them, fitted proportionally."""
    values = np.where(hidden, 1.0, exact)
    for axis in [*range(exact.ndim)] * rounds if hidden.any() else ():
        left = (exact * hidden).sum(axis=axis, keepdims=True)
        now = (values * hidden).sum(axis=axis, keepdims=True)
        values = np.where(hidden, values * left / np.where(now > 0, now, 1), values)
    return values


def swapped(places: Counts, groups: Counts, share: float, draws: np.random.Generator) -> Counts:
    """Places of records after random swapping: chosen records trade places with another chosen one of their group.

    Args:
        places, groups: one a record.
        share: part of the records that is chosen; an odd one of a group keeps its place.
    """
    chosen = np.flatnonzero(draws.random(places.size) < share)
    chosen = draws.permutation(chosen)
    chosen = chosen[np.argsort(groups[chosen], kind="stable")]
    after, number = places.copy(), 0
    while number + 1 < chosen.size:
        one, other = chosen[number], chosen[number + 1]
        if groups[one] == groups[other]:
            after[one], after[other] = places[other], places[one]
            number += 2
        else:
            number += 1
    return after
