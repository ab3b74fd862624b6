"""Synthetic records: they follow the whole counts of their release, lie in their bins, and say what they are."""

from __future__ import annotations

import json
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_hand import AGE, HEIGHT
from error_codes import coded

from dphist_pipeline.applications.coded_records import NOWHERE, places_of
from dphist_pipeline.applications.synthetic_records import MOST_ROWS, SyntheticRecords, facts_of
from dphist_pipeline.applications.synthetic_report import report_on
from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.releasing.releases import Release

COUNTY: dict[str, Any] = {
    "column": "county",
    "values": ["01", "02", "03"],
    "levels": {"state": ["A", "B", "A"]},
    "labels": ["Autauga", "", "Mobile"],
    "other": True,
}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-02-02"}
AXES = [AGE, HEIGHT, COUNTY, DAY]
ENDS: dict[str, Any] = {"low": {"age": -10}, "high": {"age": 120.5}}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return by_hand.publish(tmp_path_factory.mktemp("public"), by_hand.estimate(AXES), AXES)


def counted(records: SyntheticRecords) -> np.ndarray:
    domain = records.whole.domain
    cells = np.ravel_multi_index(tuple(places_of(domain.axes, records.to_arrow())), domain.shape)
    return np.bincount(cells, minlength=domain.cells).reshape(domain.shape)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"interpolate": True}, {"whole_numbers": ["age"]}])
def test_as_many_rows_as_the_total_give_every_cell_its_count(release: Release, more: dict[str, Any]) -> None:
    records = release.synthesize(**ENDS, **more)
    np.testing.assert_array_equal(counted(records).ravel(), release.whole()["whole_count"].to_numpy())


def test_a_start_on_the_edge_of_a_cell_gives_every_cell_its_count(release: Release) -> None:
    seed = next(seed for seed in count() if np.random.default_rng([seed, 0]).integers(1024) == 0)
    np.testing.assert_array_equal(counted(records := release.synthesize(seed=seed, **ENDS)), records.whole.counts)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7, 1_000, 1_500_000])
def test_every_run_of_cells_has_its_share_within_one_row(release: Release, rows: int) -> None:
    records = release.synthesize(rows, **ENDS)
    assert records.batches == (2 if rows > 1 << 20 else 1)
    drawn, whole = counted(records), records.whole.counts
    assert drawn.sum() == rows
    away = np.cumsum(drawn.ravel()) - np.cumsum(whole.ravel()) * (rows / whole.sum())
    assert np.abs(away).max() < 1 + 1e-6
    assert (drawn[whole == 0] == 0).all()


@pytest.mark.slow
def test_every_batch_is_a_sample_of_all_cells(release: Release) -> None:
    records = release.synthesize(1_500_000, **ENDS)
    first = next(records.draw())
    shares = [np.bincount(places_of(records.whole.domain.axes[:1], rows)[0]) for rows in (first, records.to_arrow())]
    np.testing.assert_allclose(shares[0] / shares[0].sum(), shares[1] / shares[1].sum(), atol=1e-5)


def test_values_have_their_types_labels_levels_and_ends(release: Release) -> None:
    frame = pl.DataFrame(release.synthesize(20_000, **ENDS, whole_numbers=["age"]))
    assert frame.schema == {
        **{"age": pl.Int64, "height": pl.Float64, "county": pl.String, "county_label": pl.String},
        **{"state": pl.String, "day": pl.Date},
    }
    ages = frame["age"].drop_nulls()
    assert (ages.min(), ages.max()) == (-10, 120) and set(range(18)) <= set(ages)
    assert frame["height"].min() > 0 and 0.39 < frame["height"].max() <= 0.4
    assert (frame["day"].min(), frame["day"].max()) == (date(2026, 1, 5), date(2026, 2, 1))
    texts = frame.select("county", "county_label", "state").unique().sort("county", nulls_last=True)
    expected = [("01", "Autauga", "A"), ("02", None, "B"), ("03", "Mobile", "A"), (None, None, None)]
    assert texts.rows() == expected


class OutermostShares:
    """The least and the largest number that a generator may draw."""

    def random(self, size: int) -> np.ndarray:
        return np.resize([0.0, 1 - 2**-53], size)


@pytest.mark.parametrize("more", [{}, {"interpolate": True}, {"whole_numbers": ["age"]}])
def test_the_outermost_draws_stay_in_their_bins(release: Release, more: dict[str, Any]) -> None:
    records = release.synthesize(1, **ENDS, **more)
    for axis, column in zip(records.whole.domain.axes, records._columns, strict=True):
        places = np.repeat(np.arange(axis.size), 2)
        drawn = pa.table(column.draw(places, OutermostShares()), [field.name for field in column.fields])  # type: ignore[arg-type]
        np.testing.assert_array_equal(places_of([axis], drawn)[0], places)


def test_the_same_seed_gives_the_same_records_and_others_differ(release: Release) -> None:
    one, again, other = (release.synthesize(500, seed=seed, **ENDS).to_arrow() for seed in (4, 4, 5))
    assert one.equals(again) and not one.equals(other)
    seeds = {release.synthesize(5, **ENDS).seed for _ in range(3)}
    assert len(seeds) == 3
    assert "500 rows of age, height, county" in repr(release.synthesize(500, **ENDS))


def test_uniform_and_interpolated_values_have_their_densities(tmp_path: Path) -> None:
    axis = {"column": "x", "start": 0, "stop": 3, "width": 1}
    values = np.array([100.0, 2_000.0, 3_900.0]) * 50
    made = by_hand.publish(tmp_path / "public", by_hand.estimate([axis], values, off=0.0), [axis])
    flat, sloped = (
        pl.DataFrame(made.synthesize(seed=3, interpolate=interpolate))["x"].to_numpy() for interpolate in (False, True)
    )
    # Of 100,000 values in the middle bin; a share in its lower half of 1/2, or 1/2 - 0.475/4: 70 standard errors apart.
    halves = [np.mean(x[(x >= 1) & (x < 2)] < 1.5) for x in (flat, sloped)]
    assert halves == pytest.approx([0.5, 0.5 - 0.475 / 4], abs=0.008)


def test_any_engine_reads_the_records(release: Release) -> None:
    records = release.synthesize(300, seed=1, **ENDS)
    assert duckdb.sql("SELECT count(*), count(DISTINCT county) FROM records").fetchall() == [(300, 3)]
    assert pl.DataFrame(records).equals(pl.from_arrow(records.to_arrow()))
    assert len(records.to_arrow().to_pandas()) == 300


def test_a_file_says_that_it_is_synthetic_and_of_which_release(release: Release, tmp_path: Path) -> None:
    records = release.synthesize(300, seed=1, **ENDS)
    file = records.write(tmp_path / "drawn.parquet")
    facts = facts_of(pq.read_schema(file).metadata)
    assert facts == json.loads(json.dumps(records.facts())) and facts is not None
    assert facts["synthetic"] is True and facts["statement"].startswith("Synthetic")
    audit = json.loads((release.path / "audit.json").read_bytes())
    for name in ("release", "period", "revision", "epsilon", "mechanism", "privacy_unit", "audit_digest"):
        assert facts[name] == audit[name], name
    assert (facts["rows"], facts["seed"]) == (300, 1)
    assert pq.read_table(file).equals(records.to_arrow())
    assert [path.name for path in tmp_path.iterdir()] == ["drawn.parquet"]
    assert facts_of(pq.read_schema(release.path / "histogram.parquet").metadata) is None


def test_a_report_tells_how_far_sums_of_a_file_are(release: Release, tmp_path: Path) -> None:
    whole = release.synthesize(**ENDS)
    sums = report_on(whole.whole, whole.write(tmp_path / "whole.parquet")).sums
    assert [one.sums_by for one in sums[:5]] == ["age", "height", "county", "day", "age*height"] and len(sums) == 10
    assert {one.apart for one in sums} == {0.0}
    distances = {one.table: one.farthest for one in whole.whole.distances}
    for one in sums:
        assert one.farthest == pytest.approx(distances[one.sums_by])
    few = release.synthesize(40, seed=1, **ENDS)
    apart = {one.sums_by: one.apart for one in report_on(few.whole, few.write(tmp_path / "few.parquet")).sums}
    assert 0 < apart["age"] < 0.1 < apart["county*day"] < 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"rows": 0}, "from 1 to 10,000,000,000, not 0"),
    ({"rows": -3}, "not -3"),
    ({"rows": MOST_ROWS + 1}, "from 1 to"),
    ({"rows": 2.5}, "whole number, not 2.5"),
    ({"rows": True}, "whole number"),
    ({"seed": -1}, "seed: takes a number from 0"),
    ({"seed": 2**63}, "seed: takes"),
    ({"low": {"age": 0}}, "low: the end of axis 'age' must lie below 0"),
    ({"low": {}}, "open bin below 0: declare .*--low age=VALUE"),
    ({"high": {}}, "open bin above 65: declare .*--high age=VALUE"),
    ({"high": {"age": float("inf")}}, "must lie above 65"),
    ({"high": {"age": float("nan")}}, "must lie above 65"),
    ({"high": {"age": 120, "height": 3}}, "'height' has no open bin at that end"),
    ({"high": {"age": 120, "county": 3}}, "axis 'county' has categories"),
    ({"high": {"age": 120, "agee": 3}}, "Did you mean 'age'"),
    ({"high": {"age": "old"}}, "takes numbers as ends, not 'old'"),
    ({"low": {"age": -1, "day": "2025-12-29"}}, "'day' has no open bin at that end"),
    ({"whole_numbers": ["height"]}, "the bin of axis 'height' from 0 to 0.1 holds no whole number"),
    ({"whole_numbers": ["county"]}, "axis 'county' has categories"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_options_that_do_not_suit_are_refused(release: Release, options: dict[str, Any], says: str) -> None:
    with pytest.raises(DphistError, match=says):
        release.synthesize(**{**ENDS, **options})


def test_a_table_without_records_is_refused_by_what_it_is(tmp_path: Path) -> None:
    axis = {"column": "x", "start": 0, "stop": 3, "width": 1}
    empty = by_hand.publish(tmp_path / "public", by_hand.estimate([axis], np.full(3, -900.0), off=0.0), [axis])
    with pytest.raises(
        Refused, check=coded("application_refused"), match="release 'weekly', period 2026-03-02 has a total of 0"
    ):
        empty.synthesize(10)


def test_records_are_coded_as_a_release_counts_them(release: Release) -> None:
    axes = release.synthesize(1, **ENDS).whole.domain.axes
    table = pa.table(
        {
            "age": ["17.9", "18", "-4", "1e9", "x", None],
            "height": [0.0, 0.1, 0.4, 0.41, float("nan"), 0.2],
            "county": pa.array(["01", "3", None, "03", "02", "01"]).dictionary_encode(),
            "day": ["2026-01-05", "2026-02-02", "1999-12-31", None, "2026-13-01", "2026-02-01"],
        }
    )
    found = [places.tolist() for places in places_of(axes, table)]
    assert found[0] == [1, 2, 0, 3, 4, 4]
    assert found[1] == [NOWHERE, 0, 3, NOWHERE, NOWHERE, 1]
    assert found[2] == [0, 3, 3, 2, 1, 0]
    assert found[3] == [0, NOWHERE, NOWHERE, NOWHERE, NOWHERE, 3]


BANDS: dict[str, Any] = {"column": "band", "name": "age", "bands": {"under 60": 0, "[60-70)": 60, "[70-80)": 70}}
BANDS |= {"stop": 80, "tidy": ["trim", "lower"], "other": True}


def test_bands_are_coded_by_the_texts_of_the_source_or_by_numbers() -> None:
    axis = by_hand.estimate([BANDS]).domain.axes[0]
    texts = pa.array([" Under 60", "[70-80)", "[60-70)", "65", "80", "elsewhere", None])
    for column in (texts, texts.dictionary_encode(), texts.cast(pa.large_string())):
        for name in ("band", "age"):
            assert places_of([axis], pa.table({name: column}))[0].tolist() == [0, 2, 1, 1, 3, 3, 3]
    numbers = pa.table({"age": [59.5, 60.0, 80.0, None]})
    assert places_of([axis], numbers)[0].tolist() == [0, 1, 3, 3]
    assert places_of([axis], pa.table({"age": pa.array([None, None], pa.string())}))[0].tolist() == [3, 3]


def test_texts_none_of_which_is_a_band_are_refused() -> None:
    axis = by_hand.estimate([BANDS]).domain.axes[0]
    with pytest.raises(Refused, check=coded("application_refused"), match=r"no record has a band.*under 60"):
        places_of([axis], pa.table({"age": ["60-69", "70-79", None]}))


def test_categories_are_coded_after_tidy_and_by_their_spellings() -> None:
    ward = {"column": "ward", "values": ["a", "b"], "spellings": {"Bee": "b"}, "tidy": ["trim", "lower"], "other": True}
    axis = by_hand.estimate([ward]).domain.axes[0]
    assert places_of([axis], pa.table({"ward": ["A ", "bee", "b", "c", None]}))[0].tolist() == [0, 1, 1, 2, 2]
