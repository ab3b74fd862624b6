"""What do cell keys, random rounding, suppression and swapping give and keep, beside ε, on the same public persons?

Persons of the ACS sample by survey year: state (20) × age (16 bands) × sex × marital status (5) × income (10 tenths).
The office publishes all pairs and triples of these five, twenty tables a year. Told are

- errors: of cells, of margins (as published, and as sums of cells) and of changes from 2016 to 2017 in the table
  state × age × sex, published alone or as one of the twenty; and how often a published margin is the sum of its cells;
- differencing: two tables by income that differ by one person (or by five); how often the attacker names the
  tenth of the person (or all five right), beside guessing;
- averaging: the cells of state × age × sex as sums of T tables that split them in two; rmse of the mean, and the
  share of cells that it gives exactly;
- figures: a rate, a share, a change and a rank by state, from the same published tables.

Equal settings: each method sees the same persons and the same tables, and each number is a mean over the same repeats.
Methods with ε spend it on all tables of a year together. Attackers are simple, so that a better one learns at least as
much. No clock is read. Writes JSON.

    python benchmarks/office_methods.py [--repeats 20] [--targets 2000] [--to benchmarks/results/office_methods.json]

Data: $DPHIST_DATA, else ../shared/data beside the checkout. Some minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from tables import DATA, PROJECT, released

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain, Family
from dphist_pipeline.workbench.evaluation.office_methods import (
    cell_keys,
    filled,
    perturbation_table,
    perturbed,
    rounded,
    suppressed,
    swapped,
)

Table = NDArray[np.float64]
FILE = DATA / "acs_pums_person_100k.parquet"
SHAPE = (20, 16, 2, 5, 10)
STATE, AGE, SEX, MARITAL, INCOME = range(5)
PAIRS_AND_TRIPLES = tuple(combinations(range(5), 2)) + tuple(combinations(range(5), 3))
ONE = (STATE, AGE, SEX)
EPSILONS = ("0.5", "1", "2", "4")
BELOW, SHARE, TABLE = 5, 0.05, perturbation_table(5, 3.0, 2)
SPLITS = (1, 20, 100, 400)
MARRIED, FROM_65 = (
    0,
    9,
)  # a marital status, and the first band of age from 65 on (bands of 5 years from 20, the first 18-24)


@dataclass(frozen=True)
class Persons:
    """Persons of one year: the place of each on the five axes, and numbers to split cells by."""

    places: NDArray[np.int64]
    numbers: NDArray[np.float64]
    keys: NDArray[np.float64]

    def cells(self, axes: tuple[int, ...]) -> NDArray[np.int64]:
        """The cell of each person in a table of these axes."""
        return np.ravel_multi_index(tuple(self.places[:, axis] for axis in axes), tuple(SHAPE[axis] for axis in axes))

    def table(self, axes: tuple[int, ...]) -> NDArray[np.int64]:
        """Exact counts."""
        shape = tuple(SHAPE[axis] for axis in axes)
        return np.bincount(self.cells(axes), minlength=int(np.prod(shape))).reshape(shape)


def persons(year: str, draws: np.random.Generator) -> Persons:
    """The persons of a survey year, with fresh record keys."""
    rows = pl.read_parquet(FILE).filter(pl.col("serialno").str.slice(0, 4) == year)
    states = {name: place for place, name in enumerate(sorted(pl.read_parquet(FILE)["stabbr"].unique()))}
    columns = (
        rows["stabbr"].replace_strict(states, return_dtype=pl.Int64).to_numpy(),
        np.clip(rows["agep"].to_numpy() // 5 - 4, 0, 15),
        rows["sex"].to_numpy() - 1,
        rows["mar"].to_numpy() - 1,
        rows["incgroup"].to_numpy() - 1,
    )
    numbers = rows.select("pincp", "wagp", "pwgtp", "otherincp", "agep", "ssp", "retp", "intp").to_numpy()
    return Persons(np.stack(columns, axis=1).astype(np.int64), numbers.astype(np.float64), draws.random(len(rows)))


# A year of tables by one method: the tables by their axes.
Year = dict[tuple[int, ...], Table]
Method = Callable[[Persons, tuple[tuple[int, ...], ...], np.random.Generator], Year]


def by_cell_key(people: Persons, wanted: tuple[tuple[int, ...], ...], draws: np.random.Generator) -> Year:
    """Fresh record keys, which all tables of the year share."""
    keys, year = draws.random(len(people.places)), Year()
    for axes in wanted:
        exact = people.table(axes)
        of_cells = cell_keys(keys, people.cells(axes), exact.size).reshape(exact.shape)
        year[axes] = perturbed(exact, of_cells, TABLE).astype(np.float64)
    return year


def by_rounding(base: int) -> Method:
    """Each cell of each table by itself."""
    return lambda people, wanted, draws: {
        axes: rounded(people.table(axes), base, draws).astype(np.float64) for axes in wanted
    }


def by_suppression(people: Persons, wanted: tuple[tuple[int, ...], ...], draws: np.random.Generator) -> Year:
    """Each table by itself; hidden cells as a reader fills them."""
    exact = {axes: people.table(axes) for axes in wanted}
    return {axes: filled(counts, suppressed(counts, BELOW)) for axes, counts in exact.items()}


def moved(people: Persons, draws: np.random.Generator) -> Persons:
    """Persons after 5 % have swapped their state with another of the same sex, at random."""
    places = people.places.copy()
    places[:, STATE] = swapped(places[:, STATE], people.cells((SEX,)), SHARE, draws)
    return Persons(places, people.numbers, people.keys)


def by_swapping(people: Persons, wanted: tuple[tuple[int, ...], ...], draws: np.random.Generator) -> Year:
    """Exact tables of swapped records."""
    after = moved(people, draws)
    return {axes: after.table(axes).astype(np.float64) for axes in wanted}


def by_epsilon(mechanism: str, epsilon: str) -> Method:
    """One table by a mechanism; several as a family, whose tables agree."""

    def year(people: Persons, wanted: tuple[tuple[int, ...], ...], draws: np.random.Generator) -> Year:
        if len(wanted) == 1:
            exact = people.table(wanted[0])
            made = dph.sanitize(exact, mechanism=mechanism, epsilon=epsilon, sensitivity=1)
            return {wanted[0]: made.values}
        names, weights = tuple("_".join(map(str, axes)) for axes in wanted), (1.0,) * len(wanted)
        family = Family(Domain.from_shape(SHAPE), tuple(range(5)), names, wanted, weights, 10_000_000)
        tables = released(family, people.table((STATE, AGE, SEX, MARITAL, INCOME)), epsilon)
        return dict(zip(wanted, tables, strict=True))

    return year


OFFICE: dict[str, Method] = {
    "cell keys": by_cell_key,
    "rounding to 3": by_rounding(3),
    "rounding to 5": by_rounding(5),
    "suppression below 5": by_suppression,
    "swapping of 5 %": by_swapping,
}


def methods(alone: bool) -> dict[str, Method]:
    """All methods by their names in the results; of a family there is one mechanism, of a table two are compared."""
    ours = ("geometric", "adaptive") if alone else ("tables",)
    return OFFICE | {f"{name}, ε = {epsilon}": by_epsilon(name, epsilon) for epsilon in EPSILONS for name in ours}


def rms(numbers: list[Table]) -> float:
    """Root of the mean square over all."""
    return float(np.sqrt(np.mean([np.mean(np.square(one)) for one in numbers])))


def errors(years: tuple[Persons, Persons], repeats: int, draws: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Cells, margins, changes and sums of the table state × age × sex, alone and as one of twenty."""
    before, now = years
    exact = now.table(ONE)
    truth = exact - before.table(ONE)
    margins = [(STATE,), (AGE,), (STATE, AGE), (AGE, SEX), (STATE, SEX)]
    small = (exact > 0) & (exact < 10)
    for alone in (True, False):
        for name, method in methods(alone).items():
            found: dict[str, list[Table]] = {key: [] for key in ("cell", "small", "sum", "change", "margin")}
            agree = []
            for _ in range(repeats):
                with_epsilon = "ε" in name
                # Margins that are published beside the table. Ours are sums of its cells, or tables of the family.
                wanted = (ONE,) if with_epsilon else (ONE, *margins)
                if not alone:
                    wanted = PAIRS_AND_TRIPLES if with_epsilon else (*PAIRS_AND_TRIPLES, (STATE,), (AGE,))
                year, last = method(now, wanted, draws), method(before, (ONE,) if alone else wanted, draws)
                found["cell"].append(year[ONE] - exact)
                found["small"].append((year[ONE] - exact)[small])
                found["change"].append(year[ONE] - last[ONE] - truth)
                for axes in margins:
                    over = tuple(place for place, axis in enumerate(ONE) if axis not in axes)
                    summed, true = year[ONE].sum(axis=over), now.table(axes)
                    published = year.get(axes, summed)
                    if name == "suppression below 5":
                        published = true  # margins are shown; what hides of them is in no sum
                    found["sum"].append(summed - true)
                    found["margin"].append(published - true)
                    agree.append(float((np.abs(published - summed) < 1e-6).mean()))
            row: dict[str, Any] = {"tables": 1 if alone else 20, "method": name}
            row |= {f"rmse_{key}": rms(held) for key, held in found.items()}
            yield row | {"margins_that_agree": float(np.mean(agree))}


def differencing(people: Persons, targets: int, draws: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Tables of one state, age and sex by income, with and without one person, or five."""
    chosen = draws.choice(len(people.places), targets, replace=False)
    cells, income = people.cells(ONE), people.places[:, INCOME]
    after = moved(people, draws)
    cells_after = after.cells(ONE)
    for number in (1, 5):
        right: dict[str, list[bool]] = {}
        for target in chosen:
            mates = np.flatnonzero((cells == cells[target]) & (np.arange(len(cells)) != target))
            if number > 1 + len(mates):
                continue
            gone = np.append(draws.choice(mates, number - 1, replace=False), target)
            inside = np.flatnonzero(cells == cells[target])
            rest = np.setdiff1d(inside, gone)
            truth = np.bincount(income[gone], minlength=10)
            pair = [np.bincount(income[held], minlength=10) for held in (inside, rest)]
            moved_in = np.flatnonzero(cells_after == cells[target])
            swapped_pair = [
                np.bincount(income[held], minlength=10) for held in (moved_in, np.setdiff1d(moved_in, gone))
            ]
            keyed = [
                perturbed(counts, cell_keys(people.keys[held], income[held], 10), TABLE)
                for counts, held in zip(pair, (inside, rest), strict=True)
            ]
            hidden = [suppressed(counts, BELOW) for counts in pair]
            shown = ~(hidden[0] | hidden[1])
            differences = {
                "cell keys": keyed[0] - keyed[1],
                "rounding to 3": rounded(pair[0], 3, draws) - rounded(pair[1], 3, draws),
                "rounding to 5": rounded(pair[0], 5, draws) - rounded(pair[1], 5, draws),
                "suppression below 5": np.where(shown, pair[0] - pair[1], 0),
                "swapping of 5 %": swapped_pair[0] - swapped_pair[1],
            }
            for epsilon in EPSILONS:
                half = f"{float(epsilon) / 2:g}"
                noisy = [
                    dph.sanitize(counts, mechanism="geometric", epsilon=half, sensitivity=1).values for counts in pair
                ]
                differences[f"geometric, ε = {epsilon}"] = noisy[0] - noisy[1]
            for name, difference in differences.items():
                seen = difference.astype(np.float64)
                if number == 1:
                    if name == "cell keys":  # whatever changed is where the person is, up or down
                        seen = np.abs(seen)
                    elif name == "suppression below 5" and not (seen > 0).any():  # among the hidden ones then
                        seen = np.where(shown, 0.0, 1.0)
                    best = np.flatnonzero(seen == seen.max())
                    right.setdefault(name, []).append(bool(truth[draws.choice(best)] == 1))
                else:
                    right.setdefault(name, []).append(bool((seen == truth).all()))
            common = np.flatnonzero(pair[1] == pair[1].max())
            guess = (
                truth[draws.choice(common)] == 1
                if number == 1
                else (draws.multinomial(5, np.full(10, 0.1)) == truth).all()
            )
            right.setdefault("guessing", []).append(bool(guess))
        for name, held in right.items():
            yield {
                "persons_apart": number,
                "method": name,
                "attacks": len(held),
                "attacker_right": float(np.mean(held)),
            }


def averaging(people: Persons, repeats: int, draws: np.random.Generator) -> Iterator[dict[str, Any]]:
    """The mean over T tables of the sum of the two parts of every cell, and how many cells it gives exactly."""
    cells, shape = people.cells(ONE), (20, 16, 2)
    exact = people.table(ONE).ravel()
    held = exact > 0
    after = moved(people, draws).table(ONE).ravel()
    for number in SPLITS:
        # Splits as tables have them: a number above or below a bound, at bounds spread over its values.
        upper = np.empty((number, len(cells)), dtype=bool)
        for split in range(number):
            column = people.numbers[:, split % people.numbers.shape[1]]
            upper[split] = column > np.quantile(column, (split * 0.6180339887 + 0.5) % 1)
        parts = [2 * cells + side for side in upper]
        totals: dict[str, list[Table]] = {}
        for _ in range(min(repeats, 5)):
            keys = draws.random(len(cells))
            means: dict[str, Table] = {}
            pairs = []
            for part in parts:
                counts = np.bincount(part, minlength=2 * exact.size)
                made = {
                    "cell keys": perturbed(counts, cell_keys(keys, part, counts.size), TABLE),
                    "rounding to 3": rounded(counts, 3, draws),
                    "rounding to 5": rounded(counts, 5, draws),
                }
                for epsilon in ("0.5", "2"):
                    # The noise of `geometric` at ε / T in each part; drawn by NumPy here, for speed.
                    alpha = np.exp(-float(epsilon) / number)
                    noise = draws.geometric(1 - alpha, counts.shape) - draws.geometric(1 - alpha, counts.shape)
                    made[f"ε = {epsilon}, shared by T tables"] = counts + noise
                pairs.append(made.pop("cell keys").reshape(-1, 2))
                for name, values in made.items():
                    means[name] = means.get(name, 0) + values.reshape(-1, 2).sum(axis=1) / number
            # Equal sets of records are told alike, so a pair of numbers that comes again counts once.
            by_cell = np.stack(pairs, axis=1)
            means["cell keys"] = np.array([np.unique(told, axis=0).sum(axis=1).mean() for told in by_cell])
            for name, mean in means.items():
                totals.setdefault(name, []).append(mean)
        for name, found in totals.items():
            yield {
                "tables": number,
                "method": name,
                "rmse": rms([(mean - exact)[held] for mean in found]),
                "exactly_known": float(np.mean([(np.rint(mean) == exact)[held].mean() for mean in found])),
            }
        yield {
            "tables": number,
            "method": "swapping of 5 %",
            "rmse": rms([(after - exact)[held]]),
            "exactly_known": float((after == exact)[held].mean()),
        }
        yield {"tables": number, "method": "suppression below 5"} | _given_back(exact.reshape(shape), parts)


def _given_back(exact: NDArray[np.int64], parts: list[NDArray[np.int64]]) -> dict[str, float]:
    """Cells that are shown, or follow from parts that other tables show, and then from margins, line by line."""
    hidden = suppressed(exact, BELOW)
    primary = (exact > 0) & (exact < BELOW)
    for part in parts:
        split = np.bincount(part, minlength=2 * exact.size).reshape(*exact.shape, 2)
        hidden &= suppressed(split, BELOW).any(axis=-1)
    while True:
        single = np.zeros_like(hidden)
        for axis in range(hidden.ndim):
            single |= hidden & (hidden.sum(axis=axis, keepdims=True) == 1)
        if not single.any():
            break
        hidden &= ~single
    held = exact > 0
    values = filled(exact, hidden)
    return {
        "rmse": rms([(values - exact)[held]]),
        "exactly_known": float((~hidden)[held].mean()),
        "of_small_cells": float((~hidden)[primary].mean()),
    }


def figures(years: tuple[Persons, Persons], repeats: int, draws: np.random.Generator) -> Iterator[dict[str, Any]]:
    """A rate, a share, a change and a rank by state, from published tables."""
    before, now = years
    grid = (STATE, AGE, MARITAL)

    def told(year: Year, last: Year) -> dict[str, Table]:
        """The four figures of 20 states: one grid is added up; else the pair of axes is asked."""
        pairs = {}
        for axes, axis in (((STATE, MARITAL), 1), ((STATE, AGE), 2)):
            pairs[axes] = [one[axes] if axes in one else one[grid].sum(axis=axis) for one in (year, last)]
        (marital, _), (age, age_before) = pairs.values()
        rate = 1000 * marital[:, MARRIED] / np.maximum(marital.sum(axis=1), 1)
        share = 100 * age[:, FROM_65:].sum(axis=1) / np.maximum(age.sum(axis=1), 1)
        change = age[:, FROM_65:].sum(axis=1) - age_before[:, FROM_65:].sum(axis=1)
        return {"rate": rate, "share": share, "change": change, "rank": np.argsort(np.argsort(-rate))}

    truth = told({grid: now.table(grid).astype(float)}, {grid: before.table(grid).astype(float)})
    pairs = np.triu_indices(20, 1)
    for alone in (True, False):
        for name, method in methods(alone).items():
            if "adaptive" in name or (alone and "ε" not in name):
                continue  # the office's methods publish all tables from the start
            wanted = (grid,) if alone else PAIRS_AND_TRIPLES
            found = [told(method(now, wanted, draws), method(before, wanted, draws)) for _ in range(repeats)]
            row: dict[str, Any] = {"tables": 1 if alone else 20, "method": name}
            row |= {f"rmse_{key}": rms([one[key] - truth[key] for one in found]) for key in ("rate", "share", "change")}
            row["changes_of_wrong_sign"] = float(
                np.mean([(one["change"] * truth["change"] < 0).mean() for one in found])
            )
            row["states_at_another_rank"] = float(np.mean([(one["rank"] != truth["rank"]).sum() for one in found]))
            row["ranks_moved_at_most"] = float(np.mean([np.abs(one["rank"] - truth["rank"]).max() for one in found]))
            order = truth["rank"][pairs[0]] < truth["rank"][pairs[1]]
            swaps = [((one["rank"][pairs[0]] < one["rank"][pairs[1]]) != order).mean() for one in found]
            yield row | {"pairs_in_wrong_order": float(np.mean(swaps))}


def digits(row: dict[str, Any]) -> dict[str, Any]:
    """The row with four digits of each number."""
    return {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}


def main() -> None:
    """Runs all four parts, prints rows, and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--targets", type=int, default=2000)
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "office_methods.json")
    given = parser.parse_args()
    if not FILE.is_file():
        print(f"not measured: there is no {FILE.name} at $DPHIST_DATA or ../shared/data")
        return
    draws = np.random.default_rng()
    years = persons("2016", draws), persons("2017", draws)
    exact = years[1].table(ONE)
    report: dict[str, Any] = {
        "about": {
            "persons": len(years[1].places),
            "cells": int(exact.size),
            "empty": int((exact == 0).sum()),
            "below_5": int(((exact > 0) & (exact < BELOW)).sum()),
            "median_cell": float(np.median(exact)),
            "repeats": given.repeats,
            "cell_keys": "D = 5, V = 3, js = 2",
            "swapping": "random, of states, within sex",
        }
    }
    given.to.parent.mkdir(parents=True, exist_ok=True)
    runs = {
        "errors": lambda: errors(years, given.repeats, draws),
        "differencing": lambda: differencing(years[1], given.targets, draws),
        "averaging": lambda: averaging(years[1], given.repeats, draws),
        "figures": lambda: figures(years, given.repeats, draws),
    }
    for part, rows in runs.items():
        report[part] = []
        for row in rows():
            report[part].append(digits(row))
            print(part, json.dumps(report[part][-1], ensure_ascii=False), flush=True)
        given.to.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
