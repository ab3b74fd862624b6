"""Boxes as macros read them: structs, JSON text and maps, without DuckDB's extension `json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import by_hand
import duckdb
import pytest
from answering_scenario import attached
from quick_catalogue import build_catalogue

pytestmark = pytest.mark.slow

ODD = ["a, b", "it's", "null", "{}", "[c]", "é😀", "a:b", "(c)", "d  d", "2026", "e = f"]
AXES = [{"column": "ward", "values": ODD, "other": True}, {"column": "age", "edges": [0, 18, 65], "above": True}]


@pytest.fixture(scope="module")
def wards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    public = tmp_path_factory.mktemp("public")
    (public / "scratch").mkdir()
    by_hand.publish(public, by_hand.estimate(AXES), AXES)
    with attached(build_catalogue(public, public / "scratch")) as connection:
        yield connection


def counted(connection: duckdb.DuckDBPyConnection, box: object) -> float:
    """The unbiased sum of the cells in a box."""
    (row,) = connection.execute("SELECT unbiased FROM r.dph_box('r.weekly', $box)", {"box": box}).fetchall()
    return float(row[0])


def test_every_category_is_found_by_a_struct_a_map_and_json_text(wards: duckdb.DuckDBPyConnection) -> None:
    for category in [*ODD, None]:
        (told,) = wards.execute(
            "SELECT sum(unbiased_estimate) FROM r.weekly WHERE ward IS NOT DISTINCT FROM ?", [category]
        ).fetchall()
        box = {"ward": category}
        lists = [{"ward": [category]}] if category in ("a, b", None) else []
        for written in [box, *dict.fromkeys([json.dumps(box), json.dumps(box, ensure_ascii=False)]), *lists]:
            assert counted(wards, written) == pytest.approx(told[0]), written
        of_map = "SELECT unbiased FROM r.dph_box('r.weekly', MAP {'ward': [CAST($one AS VARCHAR)]})"
        if category is not None and re.fullmatch(r"[\w ]+", category.strip()):
            assert wards.execute(of_map, {"one": category}).fetchall() == [(pytest.approx(told[0]),)]


def test_all_but_some_are_the_rest_however_the_box_is_written(wards: duckdb.DuckDBPyConnection) -> None:
    (rest,) = wards.execute("SELECT sum(unbiased_estimate) FROM r.weekly WHERE ward IS DISTINCT FROM 'a, b'").fetchall()
    struct = {"ward": {"not": "a, b"}}
    assert [counted(wards, written) for written in (struct, json.dumps(struct))] == [pytest.approx(rest[0])] * 2


def test_a_text_may_leave_out_quotes_or_have_those_of_sql(wards: duckdb.DuckDBPyConnection) -> None:
    (told,) = wards.execute("SELECT sum(unbiased_estimate) FROM r.weekly WHERE age_lower >= 18").fetchall()
    for written in ('{"age": [18, null]}', "{'age': [18, NULL]}", "{age: [18, null]}", ' { "age" :[18 , null ] } '):
        assert counted(wards, written) == pytest.approx(told[0]), written


def test_what_is_no_object_is_refused(wards: duckdb.DuckDBPyConnection) -> None:
    for written in (
        "A",
        "[1]",
        '{"age": [18, 65}',
        '{"age": [[18], 65]}',
        '{"age": [18, 65],}',
        '{"age": "18}',
        "{}{}",
    ):
        with pytest.raises(duckdb.Error, match="the box is a struct or a JSON object"):
            counted(wards, written)
    with pytest.raises(duckdb.Error, match="with each axis once"):
        counted(wards, '{"age": [18, 65], "age": [18, 65]}')


def test_what_a_spec_bounds_is_an_integer_for_json_of_javascript(wards: duckdb.DuckDBPyConnection) -> None:
    kinds = {name: kind for name, kind, *_ in wards.execute("DESCRIBE r.weekly").fetchall()}
    assert {kinds[name] for name in ("revision", "cell_number", "group_id", "age_order")} == {"INTEGER"}
    described = {name: kind for name, kind, *_ in wards.execute("DESCRIBE r.dph_releases").fetchall()}
    assert (described["revision"], described["cells"]) == ("INTEGER", "INTEGER")
    answer = {name: kind for name, kind, *_ in wards.execute("DESCRIBE FROM r.dph_total('r.weekly')").fetchall()}
    assert answer["revision"] == "INTEGER"
