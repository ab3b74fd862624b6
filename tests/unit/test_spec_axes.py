"""Axes of a spec: exact bins, categories that arrived as text, and published names that do not clash."""

from __future__ import annotations

import time
from dataclasses import replace

import duckdb
import pytest
from spec_scenario import AGE, WARD, refusal, spec

from dphist_pipeline.base.domain import BinnedAxis, CategoricalAxis
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.fields import OUR_COLUMNS, SQL_WORDS


def edges(axis: dict[str, object]) -> tuple[float, ...]:
    """The edges that a binned axis of column x ends up with."""
    found = spec(axes=[{"column": "x", **axis}]).domain.axes[0]
    assert isinstance(found, BinnedAxis)
    return found.edges


def problem(axis: dict[str, object]) -> dict[str, str]:
    """What is wrong with one axis of column x, by place below it."""
    return {
        place.removeprefix("axes[0]").lstrip("."): what
        for place, what in refusal(axes=[{"column": "x", **axis}]).items()
    }


def test_edges_are_the_doubles_nearest_to_the_exact_decimals() -> None:
    assert edges({"start": 0, "stop": 1, "width": 0.1}) == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
    assert edges({"start": "1/3", "stop": "4/3", "width": "1/3"}) == (1 / 3, 2 / 3, 1, 4 / 3)
    assert edges({"edges": ["-0.1", 0, 1e15]}) == (-0.1, 0, 1e15)


def test_axes_keep_their_declared_cells() -> None:
    binned, categorical = spec(axes=[{**AGE, "closed": "right", "other": True}, WARD]).domain.axes
    assert isinstance(binned, BinnedAxis) and isinstance(categorical, CategoricalAxis)
    assert (binned.closed, binned.below, binned.above, binned.other, binned.size) == ("right", False, True, True, 22)
    assert categorical.values == ("surgery", "medicine", "maternity") and categorical.other


def test_whole_numbers_are_declared_and_need_whole_ends() -> None:
    assert spec(axes=[{**AGE, "whole": True}]).domain.axes[0] == replace(spec().domain.axes[0], whole=True)
    assert "0.5 is not a whole number" in problem({"edges": [0, "0.5", 1], "whole": True})["edges[1]"]
    assert "0.5 is not" in problem({"start": 0, "stop": 2, "width": "1/2", "whole": True})["width"]


def test_a_spec_without_whole_numbers_keeps_its_digest() -> None:
    assert spec(axes=[{**AGE, "whole": False}, WARD]).digest == spec().digest
    assert spec(axes=[{**AGE, "whole": True}, WARD]).digest != spec().digest


def test_the_ends_of_open_bins_are_declared_beyond_their_edges_and_read_back() -> None:
    axis = {"column": "x", "start": 1, "stop": 7, "width": 1, "above": True, "whole": True}
    declared = spec(axes=[{**axis, "highest": 20}])
    assert declared.domain == spec(axes=[axis]).domain and declared.digest != spec(axes=[axis]).digest
    read = domain_of([one.as_json() for one in declared.axes]).axes[0]
    assert isinstance(read, BinnedAxis) and (read.lowest, read.highest) == (None, 20)
    assert spec(axes=[{**axis, "highest": 7}]).domain.axes[0].highest == 7  # a bin of one whole number
    for wrong, place, said in (
        ({"highest": 6}, "highest", "6 must lie above 7, the edge of the open bin"),
        ({"highest": 7, "closed": "right"}, "highest", "7 must lie above 7"),
        ({"highest": "20.5"}, "highest", "20.5 is not a whole number"),
        ({"highest": 7, "whole": False}, "highest", "7 must lie above 7"),
        ({"lowest": 0}, "lowest", "ends the bin of `below: true`, which this axis does not have"),
        ({"lowest": 1, "below": True}, "lowest", "1 must lie below 1, the edge of the open bin"),
    ):
        assert said in problem({**axis, **wrong})[place]


def test_a_width_that_does_not_divide_is_refused_with_a_stop_that_fits() -> None:
    assert "`stop: 105`" in problem({"start": 0, "stop": 101, "width": 5})["width"]
    assert "`stop: 1.2`" in problem({"start": 0, "stop": 1, "width": 0.3})["width"]


def test_too_many_bins_are_refused_by_their_number_and_at_once() -> None:
    started = time.process_time()
    assert "10,000,000" in problem({"start": 0, "stop": 10**15, "width": 1e-6})["width"]
    assert "`max_cells`" in refusal(max_cells=50)["axes"]
    big = [{"column": "x", "name": f"x{n}", "start": 0, "stop": 10**7, "width": 1} for n in range(50)]
    assert "`max_cells`" in refusal(axes=big)["axes"]
    assert time.process_time() - started < 5


def test_overlapping_unsorted_and_repeated_edges_are_refused_by_position() -> None:
    assert set(problem({"edges": [0, 10, 5, 20]})) == {"edges[2]"}
    assert "overlap" in problem({"edges": [0, 10, 10]})["edges[2]"]
    assert set(problem({"edges": [[0, 10], [5, 20]]})) == {"edges[0]", "edges[1]"}


def test_bins_that_doubles_cannot_tell_apart_are_refused() -> None:
    assert set(problem({"edges": ["1e15", "1000000000000000.01"]})) >= {"edges[1]"}
    assert set(problem({"edges": ["0.1", "0.10000000000000000001"]})) == {"edges[1]"}
    assert "too narrow" in problem({"start": 10**14, "stop": 10**14 + 1, "width": "1/1000"})["width"]


@pytest.mark.parametrize(
    ("axis", "place"),
    [
        ({"edges": [0]}, "edges"),
        ({"edges": 5}, "edges"),
        ({"edges": [0, float("inf")]}, "edges[1]"),
        ({"edges": [0, float("nan")]}, "edges[1]"),
        ({"edges": [0, 2e15]}, "edges[1]"),
        ({"edges": [0, None]}, "edges[1]"),
        ({"edges": [False, True]}, "edges[0]"),
        ({"start": 0, "stop": 0, "width": 1}, "stop"),
        ({"start": 0, "stop": 1, "width": 0}, "width"),
        ({"start": 0, "stop": 1, "width": -1}, "width"),
        ({"start": 0, "stop": "ten", "width": 1}, "stop"),
        ({"start": 0, "width": 1}, ""),
        ({"start": 0, "edges": [0, 1]}, ""),
        ({"edges": [0, 1], "values": ["a"]}, ""),
        ({"edges": [0, 1], "closed": "both"}, "closed"),
        ({"edges": [0, 1], "below": "yes"}, "below"),
        ({"vlaues": ["a"]}, ""),
        ({"values": ["a"], "below": True}, "below"),
        ({"values": "a"}, "values"),
        ({"values": []}, "values"),
        ({"values_from": "codes.csv"}, "values_from"),
        ({"values_from": "codes.csv", "values": ["a"]}, "values_from"),
        ({"values_from": "codes.txt"}, "values_from"),
        ({"values_from": "codes.csv", "levels": "state"}, "levels"),
        ({"values_from": "codes.csv", "levels": ["state", "State Name"]}, "levels[1]"),
        ({"values_from": "codes.csv", "levels": ["state", "state"]}, "levels[1]"),
        ({"values": ["a"], "levels": ["b"]}, "levels"),
        ({"values": ["a"], "values_column": "b"}, "values_column"),
        ({"calendar": "day"}, "start"),
        ({"calendar": "hour", "start": "2026-01-01", "stop": "2027-01-01"}, "calendar"),
        ({"calendar": "day", "start": "2026-1-1", "stop": "2027-01-01"}, "start"),
        ({"calendar": "day", "start": "2026-02-29", "stop": "2027-01-01"}, "start"),
        ({"calendar": "day", "start": "0999-01-01", "stop": "2027-01-01"}, "start"),
        ({"calendar": "day", "start": 20260101, "stop": "2027-01-01"}, "start"),
        ({"calendar": "day", "start": "2026-01-01", "stop": "2026-01-01"}, "stop"),
        ({"calendar": "week", "start": "2026-01-06", "stop": "2026-01-13"}, "start"),
        ({"calendar": "week", "start": "2026-01-05", "stop": "2026-01-13"}, "stop"),
        ({"calendar": "month", "start": "2026-01-02", "stop": "2026-02-01"}, "start"),
        ({"calendar": "month", "start": "2026-01-01", "stop": "2026-02-02"}, "stop"),
        ({"calendar": "year", "start": "2026-04-01", "stop": "2027-01-01"}, "stop"),
        ({"calendar": "day", "start": "2026-01-01", "stop": "2027-01-01", "width": 7}, "width"),
        ({"calendar": "day", "start": "2026-01-01", "stop": "2027-01-01", "format": "%d/%m"}, "format"),
        ({"calendar": "day", "start": "2026-01-01", "stop": "2027-01-01", "format": "'; DROP"}, "format"),
        ({"values": ["a"], "column": None}, "column"),
        ({"values": ["a"], "column": "a\nb", "name": "a"}, "column"),
        ({"values": ["a"], "name": "select"}, "name"),
        ({"values": ["a"], "name": "estimate"}, "name"),
    ],
)
def test_a_bad_axis_is_refused_where_the_mistake_is(axis: dict[str, object], place: str) -> None:
    assert place in problem(axis)


@pytest.mark.parametrize("value", [False, True, 750, 8, 1, 2.5, None, float("nan"), ["a"], {"a": 1}])
def test_a_category_that_did_not_arrive_as_text_is_asked_to_be_quoted(value: object) -> None:
    assert "quote it" in problem({"values": ["ok", value]})["values[1]"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        " a",
        "a ",
        "a\x00",
        "a\nb",
        'a"b',
        "a`b",
        "a\\b",
        "../x",
        "a/../b",
        "<b>",
        "</p>",
        "<!--",
        "&amp;",
        "&#60;",
        "'quoted'",
        "it' s",
        "x' OR '1'='1",
        "a" * 201,
        "\ud800",
        "a\u202eb",
        "a\u2028b",
    ],
)
def test_a_category_that_could_break_what_prints_it_is_refused(value: str) -> None:
    assert set(problem({"values": ["ok", value]})) == {"values[1]"}


@pytest.mark.parametrize(
    "value", ["Prince George's", "<=50K", ">50K", "select", "drop table", "a & b", "Saint-Élie", "東京"]
)
def test_a_category_is_data_and_may_be_any_honest_text(value: str) -> None:
    assert value in spec(axes=[{"column": "x", "values": [value]}]).as_json()["axes"][0]["values"]  # type: ignore[index]


@pytest.mark.parametrize("twin", ["Surgery", "surgery", "SURGERY"])
def test_categories_equal_but_for_case_are_refused(twin: str) -> None:
    assert "repeats values[0]" in problem({"values": ["surgery", "b", twin]})["values[2]"]


def test_a_column_that_is_no_plain_name_needs_one() -> None:
    assert "add `name: age_group`" in problem({"column": "Age group", "values": ["a"]})["name"]
    assert (
        spec(axes=[{"column": "Age group", "name": "age_group", "values": ["a"]}]).domain.axes[0].column == "Age group"
    )
    assert "add `name: NAME`" in problem({"column": "order", "values": ["a"]})["name"]


WORDED = {"column": "ward", "values": {"C0": "surgery", "C1": None, "C2": "maternity"}}
BARE = {"column": "ward", "values": ["C0", "C1", "C2"]}


def test_listed_codes_take_words_which_are_in_no_digest() -> None:
    (axis,), bare = spec(axes=[WORDED]).domain.axes, spec(axes=[BARE])
    assert isinstance(axis, CategoricalAxis)
    assert (axis.values, axis.labels) == (("C0", "C1", "C2"), ("surgery", "", "maternity"))
    for values in (WORDED["values"], {"C0": "other words", "C1": "x", "C2": "y"}, dict.fromkeys(["C0", "C1", "C2"])):
        assert spec(axes=[{**WORDED, "values": values}]).digest == bare.digest
    assert spec(axes=[{**WORDED, "values": {"C1": "", "C0": "", "C2": ""}}]).digest != bare.digest
    assert spec(axes=[{**BARE, "labels": ["a", "b", "c"]}]).digest != bare.digest  # as it was before


def test_a_publication_keeps_the_words_of_its_codes() -> None:
    described = spec(axes=[WORDED]).as_json()["axes"]
    assert isinstance(described, list) and domain_of(described) == spec(axes=[WORDED]).domain


@pytest.mark.parametrize(
    ("axis", "place", "said"),
    [
        ({**WORDED, "labels": ["a", "b", "c"]}, "labels", "keep one of the two"),
        ({"column": "ward", "values": {}}, "values", "needs at least 1"),
        ({"column": "ward", "values": {1: "one"}}, "values[0]", "quote it"),
        ({"column": "ward", "values": {"a": 1}}, "values.a", "quote it"),
        ({"column": "ward", "values": {"NO": False}}, "values.NO", "quote it"),
        ({"column": "ward", "values": {"a": "x", "A": "y"}}, "values[1]", "case"),
    ],
)
def test_wrong_words_of_codes_are_named(axis: dict[str, object], place: str, said: str) -> None:
    found = problem(axis)
    assert set(found) == {place} and said in found[place]


@pytest.mark.parametrize("more", [{}, {"labels": ["S", "other"]}, {"levels": {"site": ["a", "other"]}}])
def test_two_cells_of_an_axis_are_not_both_called_other(more: dict[str, object]) -> None:
    axis: dict[str, object] = {"column": "ward", "values": ["surgery", "x" if more else "other"], **more}
    assert spec(axes=[axis]).domain.axes[0].size == 2
    (said,) = refusal(axes=[{**axis, "other": True}]).values()
    assert "leave it out, or give it another name" in said
    assert domain_of([{**axis, "other": True}]).cells == 3  # of what was published before


@pytest.mark.parametrize(
    "other",
    [
        {"column": "age", "values": ["a"]},
        {"column": "x", "name": "age_lower", "values": ["a"]},
        {"column": "x", "name": "ci", "edges": [0, 1]},
        {"column": "x", "name": "age", "edges": [0, 1]},
    ],
)
def test_published_columns_may_not_clash(other: dict[str, object]) -> None:
    assert set(refusal(axes=[AGE, other])) == {"axes[1].name"}


@pytest.mark.parametrize("column", sorted(OUR_COLUMNS))
def test_an_axis_may_not_take_one_of_our_columns(column: str) -> None:
    assert set(refusal(axes=[{"column": column, "values": ["a"]}])) == {"axes[0].name"}


@pytest.mark.parametrize("axes", [[], None, "age", {}, [5], [[]], [{}], [AGE] * 51])
def test_axes_that_are_no_list_of_axes_are_refused(axes: object) -> None:
    assert all(place.startswith("axes") for place in refusal(axes=axes))


def test_the_sql_words_hold_all_that_duckdb_reserves() -> None:
    rows = duckdb.connect().execute(
        "SELECT DISTINCT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
    )
    assert {word for (word,) in rows.fetchall()} <= SQL_WORDS


def test_ordinary_names_stand_bare_in_duckdb_and_are_allowed() -> None:
    names = "age sex region name type year month week day date time value position county race hour class level".split()  # noqa: SIM905
    assert not SQL_WORDS.intersection(names)
    columns = ", ".join(f"1 AS {name}" for name in names)
    assert duckdb.connect().execute(f"SELECT {', '.join(names)} FROM (SELECT {columns})").fetchall()


def test_several_unknown_keys_of_an_axis_list_the_known_ones_once() -> None:
    (says,) = problem({"column": "age", "bins": 20, "lowest": 0, "greatest": 9}).values()
    assert says.count("Known: ") == 1
