"""Shares, ratios and changes by some axes: each row is what its value alone is told, to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import by_hand
import duckdb
import pytest
import reported
from answering_scenario import attached, published_once, rows_of
from quick_catalogue import build_catalogue
from test_best_tables import published as published_family
from test_capped import published as published_with_cuts

from examples import SOAKING

pytestmark = pytest.mark.slow

BINNED = ("age", "day", "stay")
Asked = tuple[str, list[str], str]
# Questions about the scenario's release: the macro, its boxes, and what follows them.
SHARES: list[Asked] = [
    ("dph_share", ["{'state': 'A'}", "'{}'"], ""),
    ("dph_share", ["{'region': 'S'}", "{'state': {'not': 'B'}}"], "with_chance := true"),
    ("dph_ratio", ["{'state': 'A'}", "{'state': 'B'}"], ""),
    ("dph_ratio", ["{'state': 'A'}", "{'region': 'S'}"], "with_chance := true"),
    ("dph_changes", ["{'state': ['A', 'B']}"], "with_chance := true"),
    ("dph_compare", ["'2026-03-23'", "'2026-03-30'", "{'region': 'S'}"], ""),
    ("dph_compare", ["'2026-04-13'", "'2026-04-20'", "{'region': 'S'}"], ""),
]
MEANS: list[Asked] = [
    ("dph_mean", ["'age'", "-1", "100", "{'region': 'S'}"], ""),
    ("dph_sum", ["'age'", "-1", "100", "'{}'"], "with_chance := true"),
]


def ask(connection: Any, asked: Asked, release: str, *more: str, box: str = "") -> list[dict[str, Any]]:
    """The rows of a question; a `box` is put into each of its boxes."""
    macro, boxes, last = asked
    written = [put_in(one, box) if "{" in one else one for one in boxes]
    arguments = [f"'r.{release}'", *written, *filter(None, [last, *more])]
    return rows_of(connection, f"FROM r.{macro}({', '.join(arguments)})")


def put_in(box: str, more: str) -> str:
    return box if not more else f"{{{more}}}" if box == "'{}'" else f"{box[:-1]}, {more}}}"


def value_of(row: dict[str, Any], by: list[str]) -> str | None:
    """The values of a row as conditions of a box; None for `other` of a binned axis, which no box can ask for."""
    found = []
    for axis in by:
        value = [row[f"{axis}_lower"], row[f"{axis}_upper"]] if axis in BINNED else row[axis]
        if value == [None, None]:
            return None
        found.append(f"'{axis}': {value!r}".replace("None", "NULL"))
    return ", ".join(found)


def assert_as_alone(connection: Any, asked: Asked, release: str, by: list[str], every: int = 1) -> None:
    columns = {name for axis in by for name in (axis, f"{axis}_lower", f"{axis}_upper", f"{axis}_label")}
    together = ask(connection, asked, release, f"by := {by}")
    values = list(dict.fromkeys(value for row in together if (value := value_of(row, by)) is not None))
    assert len(values) > 1
    for value in values[::every]:
        mine = [row for row in together if value_of(row, by) == value]
        told = [{name: row[name] for name in row if name not in columns} for row in mine]
        assert told and repr(told) == repr(ask(connection, asked, release, box=value)), value


@pytest.mark.parametrize("asked", SHARES, ids=lambda asked: f"{asked[0]}-{asked[1][-1]}")
def test_each_row_by_axes_is_what_its_values_alone_are_told(asked: Asked) -> None:
    with attached(published_once().catalogue) as connection:
        assert_as_alone(connection, asked, "weekly", ["age", "day"], every=1 if SOAKING else 31)


@pytest.mark.parametrize("asked", MEANS, ids=lambda asked: asked[0])
@pytest.mark.parametrize("by", [["state", "day"], ["county"]], ids="+".join)
def test_each_mean_and_sum_by_axes_is_what_its_values_alone_are_told(asked: Asked, by: list[str]) -> None:
    with attached(published_once().catalogue) as connection:
        assert_as_alone(connection, asked, "weekly", by, every=1 if SOAKING else 13)


@pytest.mark.parametrize("by", [["age"], ["day"]], ids="+".join)
def test_each_row_by_one_axis_is_what_its_value_alone_is_told(by: list[str]) -> None:
    with attached(published_once().catalogue) as connection:
        assert_as_alone(connection, SHARES[0], "weekly", by, every=1 if SOAKING else 6)


def test_an_axis_that_has_conditions_and_its_levels_give_the_rows_that_every_box_has() -> None:
    with attached(published_once().catalogue) as connection:
        for by in (["state"], ["county"]):
            assert_as_alone(connection, ("dph_share", ["{'age': [18, NULL]}", "{'region': 'S'}"], ""), "weekly", by)
        rows = ask(
            connection, ("dph_ratio", ["{'county': '01'}", "{'county': ['02', '03']}"], ""), "weekly", "by := ['state']"
        )
        assert {row["state"] for row in rows} == {"A"}  # of B, the first box has no cells
        with pytest.raises(duckdb.Error, match="dph_ratio: no value by county has cells in every box"):
            ask(connection, ("dph_ratio", ["{'county': '01'}", "{'county': '02'}"], ""), "weekly", "by := ['county']")


@pytest.mark.parametrize("asked", [SHARES[0], SHARES[2], SHARES[4], SHARES[5], MEANS[0]], ids=lambda asked: asked[0])
def test_an_unknown_axis_is_told_the_axes_and_a_bare_name_the_list(asked: Asked) -> None:
    with attached(published_once().catalogue) as connection:
        with pytest.raises(duckdb.Error, match=f"{asked[0]}: there is no axis wardd in period .*; the axes are age, "):
            ask(connection, asked, "weekly", "by := ['age', 'wardd']")
        with pytest.raises(duckdb.Error, match=r"the axes are a list of names, as \['age'\], not age"):
            ask(connection, asked, "weekly", "by := 'age'")
        assert ask(connection, asked, "weekly", "by := []") == ask(connection, asked, "weekly")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports, rows cut along an axis, and a release whose axes changed from one week to the next."""
    folder = tmp_path_factory.mktemp("others")
    public = folder / "public"
    public.mkdir()
    (folder / "scratch").mkdir()
    age = [{"column": "age", "edges": [0, 10, 20, 40, 60, 80]}]
    for number, period in enumerate(("2026-03-02", "2026-03-09")):
        reported.publish(public, reported.estimate(age, reports=2500 + number), age, period=period)
        published_with_cuts(public, period=period)
    wards = {"column": "ward", "values": ["x", "y"], "other": True}
    earlier = [{"column": "age", "edges": [0, 18, 65]}, wards]
    later = [{**wards, "values": ["z", "y", "x"]}, {"column": "age", "edges": [0, 18, 40, 65]}]
    for period, axes in (("2026-03-02", earlier), ("2026-03-09", later)):
        by_hand.publish(public, by_hand.estimate(axes), axes, release="grown", period=period)
    return build_catalogue(public, folder / "scratch")


def test_reports_and_rows_cut_are_told_by_value_as_alone(others: Path) -> None:
    with attached(others) as connection:
        for asked in (("dph_share", ["'{}'"] * 2, ""), ("dph_ratio", ["'{}'"] * 2, ""), ("dph_changes", ["'{}'"], "")):
            assert_as_alone(connection, asked, "town_age", ["age"], every=1 if SOAKING else 4)
        assert_as_alone(connection, ("dph_mean", ["'stay'", "NULL", "NULL", "'{}'"], ""), "noisy", ["readmitted"])
        for boxes in (["{'readmitted': 'yes'}", "{'readmitted': ['yes', 'no']}"], ["{'stay': [0, 50]}", "'{}'"]):
            for macro in ("dph_share", "dph_ratio"):
                assert_as_alone(
                    connection,
                    (macro, boxes, ""),
                    "noisy",
                    ["stay" if "stay" not in boxes[0] else "readmitted"],
                    every=1 if SOAKING else 2,
                )
        # One axis alone: the quality table tells by how much.
        asked = ("dph_ratio", ["'{}'", "'{}'"], "")
        assert_as_alone(connection, asked, "noisy", ["readmitted"])
        assert "moves this ratio by about" in ask(connection, asked, "noisy", "by := ['readmitted']")[0]["capped"]


def test_periods_with_other_axes_are_compared_by_values_that_both_have(others: Path) -> None:
    with attached(others) as connection:
        for asked in (("dph_changes", ["'{}'"], ""), ("dph_compare", ["'2026-03-02'", "'2026-03-09'", "'{}'"], "")):
            assert_as_alone(connection, asked, "grown", ["ward"])
            rows = ask(connection, asked, "grown", "by := ['ward', 'age']")
            assert [(row["ward"], row["age_upper"]) for row in rows] == [("y", 18), ("x", 18), (None, 18)]


def test_a_table_of_a_family_answers_by_value_as_it_does_alone(tmp_path: Path) -> None:
    catalogue, _ = published_family("levels", tmp_path)
    with attached(catalogue) as connection:
        share, changes = (
            ("dph_share", ["{'age': [18, NULL]}", "'{}'"], ""),
            ("dph_changes", ["{'age': [18, NULL]}"], ""),
        )
        for asked in (share, changes, MEANS[1]):
            assert_as_alone(connection, asked, "levels_county_age_sex".replace("levels", "family"), ["state"])


def test_rows_by_values_stand_in_declared_order_with_the_columns_of_the_table() -> None:
    with attached(published_once().catalogue) as connection:
        rows = ask(connection, SHARES[0], "weekly", "period := '2026-03-02'", "by := ['age']")
        assert [(row["age_lower"], row["age_upper"]) for row in rows] == [
            (None, 0.0),
            (0.0, 18.0),
            (18.0, 65.0),
            (65.0, None),
            (None, None),
        ]
        assert list(rows[0])[:5] == ["period", "revision", "age_lower", "age_upper", "part_estimate"]
