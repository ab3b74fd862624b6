"""Intervals of linear estimates: the same from an estimate, from published files and in SQL, and wide enough."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
import reported
from answering_scenario import assert_told, attached, rows_of
from by_hand import AGE, HEIGHT, WARD
from numpy.typing import NDArray
from quick_catalogue import build_catalogue

from dphist_pipeline.estimates.chosen_cells import Condition, chosen_cells
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import LEVEL, LEVEL_OF_TWO, noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, SharedNoise
from dphist_pipeline.publishing import published_files
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.solvers.trees.regular_tree import RegularTree, best_tree, branching_tree, covariance
from examples import mostly_soaked

TOWN: dict[str, Any] = {"column": "town", "values": [f"town {number}" for number in range(41)]}
DAY: dict[str, Any] = {"column": "day", "start": 0, "stop": 1000, "width": 1, "other": True}
Box = dict[str, Condition]
GRIDS: dict[str, tuple[list[dict[str, Any]], list[Box]]] = {
    "visits": (
        [AGE, WARD, HEIGHT],
        [
            *[{}, {"age": (18, 65)}, {"ward": ["surgery", None]}, {"ward": None, "height": (0.1, 0.3)}],
            *[{"age": (0, None), "ward": "medicine", "height": (None, 0.2)}],
        ],
    ),
    "towns": ([TOWN], [{}, {"town": "town 7"}, {"town": [f"town {number}" for number in (0, 1, 5, 17, 18, 40)]}]),
    "pairs": (
        [WARD, TOWN],
        [
            {"ward": ["surgery", None], "town": [f"town {number}" for number in (0, 2, 3, 40)]},
            {"ward": [None, "medicine"], "town": [f"town {number}" for number in range(4, 13)]},
        ],
    ),
    "days": ([DAY, WARD], [{}, {"day": (3, 4)}, {"day": (100, 777), "ward": ["medicine", None]}, {"day": (None, 999)}]),
}


def linear(axes: list[dict[str, Any]], tree: RegularTree | None = None, scale: Fraction = Fraction(20)) -> Estimate:
    """An estimate made by hand with the covariance of a tree, binary and whole when left out."""
    made = by_hand.estimate(axes)
    tree = branching_tree(made.domain.shape, 2) if tree is None else tree
    parts = covariance(tree, [noise_law(scale).variance] * len(tree.widths))
    return replace(made, unbiased=NestedCells(made.values * 11, scale, tuple(map(SharedNoise, parts, tree.widths))))


def variance_by_hand(estimate: Estimate, box: Box) -> float:
    """q' C q, cell by cell."""
    assert isinstance(estimate.unbiased, NestedCells)
    cells = np.array([one.ravel() for one in np.meshgrid(*chosen_cells(estimate.domain, box), indexing="ij")]).T
    total = 0.0
    for part in estimate.unbiased.shared:
        _, counts = np.unique(cells // np.array(part.widths), axis=0, return_counts=True)
        total += part.coefficient * float((counts.astype(float) ** 2).sum())
    return total


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str], tuple[Release, Estimate]]]:
    """Every grid with a binary tree in one period, another tree and scale in the next, noisy cells in the last."""
    public = tmp_path_factory.mktemp("store")
    found = {}
    for name, (axes, _) in GRIDS.items():
        shape = by_hand.estimate(axes).domain.shape
        widths = tuple(tuple(min(width, 3 * size) for size in shape) for width in (9, 3, 1))
        made = {
            "2026-03-02": linear(axes),
            "2026-03-09": linear(axes, RegularTree(shape, widths), Fraction(1, 2)),
            "2026-03-16": by_hand.estimate(axes),
        }
        for period, estimate in made.items():
            found[name, period] = by_hand.publish(public, estimate, axes, name, period), estimate
    build_catalogue(public, tmp_path_factory.mktemp("scratch"))
    return public / "catalog.duckdb", found


def ask(catalogue: Path, query: str, *parameters: object) -> list[dict[str, Any]]:
    with attached(catalogue) as connection:
        return rows_of(connection, query, *parameters)


ASKED = [(name, box) for name, (_, boxes) in GRIDS.items() for box in boxes]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "box"), mostly_soaked(ASKED, range(1, len(ASKED), 3)), ids=str)
def test_sql_files_and_estimates_answer_alike(store: Any, name: str, box: Box) -> None:
    catalogue, found = store
    questions = [("dph_box('r.{}', ?)", [json.dumps(box)])] + ([("dph_total('r.{}')", [])] if not box else [])
    for question, parameters in questions:
        rows = ask(catalogue, f"FROM r.{question.format(name)}", *parameters)
        assert [row["period"] for row in rows] == ["2026-03-02", "2026-03-09", "2026-03-16"]
        assert [row["basis"] for row in rows] == ["linear", "linear", "unbiased"]
        for row in rows[:2]:
            release, made = found[name, row["period"]]
            expected = made.box(**box)
            assert release.answer(**box) == expected
            assert expected.basis == "linear"
            assert_told(row, expected, expected)
            variance = variance_by_hand(made, box)
            assert row["noise_error"] == pytest.approx(math.sqrt(variance), rel=1e-9)
            centre = float(made.unbiased.values[np.ix_(*chosen_cells(made.domain, box))].sum())
            assert expected.ci_upper == pytest.approx(
                centre + noise_law(made.unbiased.scale).half_width_of_linear(variance)
            )
            assert expected.ci_lower == pytest.approx(2 * centre - expected.ci_upper)


@pytest.mark.slow
def test_the_catalogue_holds_what_the_audit_says(store: Any) -> None:
    catalogue, found = store
    rows = ask(
        catalogue, "FROM r.internals.dph_covariance WHERE release = 'visits' AND period = '2026-03-02' ORDER BY ALL"
    )
    audit = json.loads((found["visits", "2026-03-02"][0].path / "audit.json").read_bytes())
    assert [list(row) for row in rows[:1]] == [
        ["release", "period", "revision", "level", "axis", "width", "coefficient"]
    ]
    assert audit["unbiased_noise_scale"] == "20"
    assert [part["widths"] for part in audit["unbiased_covariance"]] == [[8, 4, 4], [4, 4, 4], [2, 2, 2], [1, 1, 1]]
    expected = [
        (level, axis, width, part["coefficient"])
        for level, part in enumerate(audit["unbiased_covariance"], 1)
        for axis, width in zip(("age", "ward", "height"), part["widths"], strict=True)
    ]
    assert sorted((row["level"], row["axis"], row["width"], row["coefficient"]) for row in rows) == sorted(expected)
    (release,) = ask(catalogue, "FROM r.dph_releases WHERE release = 'visits' AND period = '2026-03-02'")
    assert release["noise_variance"] == noise_law(Fraction(20)).variance
    assert ask(catalogue, "FROM r.internals.dph_covariance WHERE period = '2026-03-16'") == []


@pytest.mark.slow
def test_folders_published_before_there_was_a_covariance_are_read_as_noisy_cells(tmp_path: Path) -> None:
    made = by_hand.estimate([AGE, WARD])
    folder = by_hand.publish(tmp_path, made, [AGE, WARD]).path
    audit = json.loads((folder / "audit.json").read_bytes())
    assert audit.pop("unbiased_covariance") is None
    audit["audit_digest"] = published_files.audit_digest(audit)
    (folder / "audit.json").write_text(json.dumps(audit))
    box: Box = {"age": (0, 65), "ward": ["surgery", None]}
    assert Release(folder, audit, replayed=False).answer(**box) == made.box(**box)
    (tmp_path / "scratch").mkdir()
    catalogue = build_catalogue(tmp_path, tmp_path / "scratch")
    (row,) = ask(catalogue, "FROM r.dph_box('r.weekly', ?)", json.dumps(box))
    assert row["basis"] == "unbiased"


def weights(tree: RegularTree, mask: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much the draw of each node weighs in the estimate of a sum, by cov(sum, node) / variance; one axis."""
    parts = covariance(tree, [1.0] * len(tree.widths))

    def sums(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
        return values.reshape(-1, width).sum(axis=1)

    padded = np.append(mask, np.zeros(tree.padded_grid(len(parts) - 1)[0] - mask.size))
    together = np.zeros_like(padded)
    for part, (width,) in zip(parts, tree.widths, strict=True):
        together += part * np.repeat(sums(padded, width), width)
    real = [sums(together, width)[: tree.grid(level)[0]] for level, (width,) in enumerate(tree.widths)]
    return np.concatenate(real)


def probability(scale: Fraction, weighed: NDArray[np.float64], reach: float) -> float:
    """P(|sum| <= reach) of a weighted sum of draws, by its characteristic function on a lattice of weights."""
    fine = round(min(1000, max(50, 1000 / scale)))
    q = math.exp(-1 / scale)
    deviation = math.sqrt(noise_law(scale).variance * float(weighed @ weighed))
    points = 1 << math.ceil(math.log2(2 * fine * (8 * deviation + 20 * float(scale) + 3)))
    turn = 2 * np.pi * np.arange(points // 2 + 1) / points
    log_phi = np.zeros(turn.size)
    for step, times in zip(*np.unique(np.round(np.abs(weighed) * fine), return_counts=True), strict=True):
        log_phi += times * np.log((1 - q) ** 2 / (1 - 2 * q * np.cos(turn * step) + q * q))
    law = np.fft.irfft(np.exp(log_phi), points)
    return float(law[0] + 2 * law[1 : math.floor(reach * fine + 1e-6) + 1].sum())


SCALES = [Fraction(number, 100) for number in (10, 27, 56, 150, 2000)]


@pytest.mark.parametrize("tree", [branching_tree((64,), 2), branching_tree((17,), 16), best_tree((200,))], ids=str)
@pytest.mark.parametrize("scale", SCALES[::2], ids=str)
def test_an_interval_holds_the_truth_as_often_as_it_says_by_the_law_of_its_noise(
    scale: Fraction, tree: RegularTree
) -> None:
    size = tree.shape[0]
    parts = covariance(tree, [noise_law(scale).variance] * len(tree.widths))
    cells = NestedCells(np.zeros(size), scale, tuple(map(SharedNoise, parts, tree.widths)))
    places = np.arange(size)
    boxes = [places[3:4], places[size - 1 :], places, places[5:13], places[size // 3 :], places[::2], places[1:3]]
    for level in (LEVEL, LEVEL_OF_TWO):
        held = []
        for box in boxes:
            weighed = weights(tree, np.isin(places, box).astype(float))
            assert np.abs(weighed).max() <= 1 + 1e-12
            held.append(probability(scale, weighed, cells.half_width_of_box([box], level)))
        assert min(held) >= float(level) - 0.0005  # less than a lattice of weights hides
        assert max(held) < 1 if scale < 1 else np.mean(held) < 0.997 if level > LEVEL else np.mean(held) < 0.99


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_weighted_sums_of_few_draws_are_held_too(scale: Fraction) -> None:
    source = np.random.default_rng(scale.numerator)
    for _ in range(25):
        weighed = np.append(1.0, source.uniform(0, source.choice([0.1, 0.5, 1]), source.integers(0, 9)))
        weighed *= source.choice([1, 0.95, 0.6])
        variance = noise_law(scale).variance * float(weighed @ weighed)
        for level in (LEVEL, LEVEL_OF_TWO):
            held = probability(scale, weighed, noise_law(scale).half_width_of_linear(variance, level))
            assert held >= float(level) - 0.0005


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(30)], ids=str)
def test_the_grid_for_sql_is_what_python_takes(scale: Fraction) -> None:
    grid = noise_law(scale).linear_reach_grid(5000)
    assert grid[0][0] == 1
    assert grid[-2][0] < 5000 <= grid[-1][0]
    for draws in (0.3, 1, 1.5, 2, 7, 19.99, 333, 4999):
        variance = draws * noise_law(scale).variance
        looked_up = [reach for number, reach in grid if number <= max(1, draws * (1 + 1e-9))][-1]
        assert noise_law(scale).half_width_of_linear(variance) == looked_up * math.sqrt(variance)


def test_a_whole_draw_reaches_a_record_further_and_never_beyond_chebyshev() -> None:
    for scale in (Fraction(4), Fraction(100)):
        assert noise_law(scale).half_width_of_linear(noise_law(scale).variance) == pytest.approx(
            noise_law(scale).half_width_of_sum(1) + 1
        )
    assert noise_law(Fraction(1, 100)).linear_reach(1) == math.sqrt(20)
    assert 1.9599 < noise_law(Fraction(1000)).linear_reach(10**6) < 1.961


def test_a_box_without_cells_has_an_interval_of_no_width() -> None:
    empty = [np.zeros(0, dtype=np.int64)]
    nested = NestedCells(np.zeros(3), Fraction(2), (SharedNoise(5.0, (1,)),))
    for unbiased in (NoisyCells(np.zeros(3), Fraction(2)), nested, reported.estimate([reported.AGE]).unbiased):
        assert unbiased is not None and unbiased.half_width_of_box(empty) == 0
