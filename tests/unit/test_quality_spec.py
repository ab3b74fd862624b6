"""The quality table in a spec: what is refused, what it costs, and that specs without it keep their digests."""

from __future__ import annotations

from fractions import Fraction

import pytest
from spec_scenario import AGE, WARD, refusal, spec

from dphist_pipeline.releasing.quality_queries import half_widths
from dphist_pipeline.spec import _quality as quality
from dphist_pipeline.spec.model import UNSEEN_CUT
from dphist_pipeline.workbench.planning.expected_quality import quality_left_out, rows_for_quality

SUBSTITUTE = {"neighbours": "substitute"}


@pytest.mark.parametrize(
    ("quality", "place", "says"),
    [
        ("yes", "quality", "must be a mapping such as {share: 1/20, rows: 10, by: [ward]}"),
        ({"rows": 3}, "quality.rows", "must be more than `max_rows_per_unit`, 3"),
        ({"rows": 0}, "quality.rows", "must be at least 1"),
        ({"rows": 10**6}, "quality.rows", "must be at most 10,000"),
        ({"rows": True}, "quality.rows", "must be a whole number"),
        ({"share": 0}, "quality.share", "must lie between 0 and 1"),
        ({"share": 1}, "quality.share", "must lie between 0 and 1"),
        ({"share": "-1/20"}, "quality.share", "must lie between 0 and 1"),
        ({"share": "1/9999999999999999999999999999999999"}, "quality.share", "must lie between 0 and 1"),
        ({"share": "most"}, "quality.share", "must be a number"),
        ({"share": "0.00001"}, "quality.share", "is too small to draw noise for"),
        ({"by": "ward"}, "quality.by", "must be a list"),
        ({"by": ["ward", "ward"]}, "quality.by", "names an axis twice"),
        ({"by": ["wards"]}, "quality.by[0]", "'wards' is no axis of the spec. Did you mean 'ward'?"),
        ({"by": ["ward", "age", "ward"]}, "quality.by", "has more than 2 items"),
        ({"bye": ["ward"]}, "quality.bye", "unknown field. Did you mean 'by'?"),
    ],
)
def test_a_wrong_quality_table_is_refused_with_its_place(quality: object, place: str, says: str) -> None:
    found = refusal(quality=quality)
    assert list(found) == [place]
    assert says in found[place]


def test_rows_and_axes_have_no_use_where_every_row_is_a_unit() -> None:
    by_row = {"privacy_unit": "row", "max_rows_per_unit": ...}
    found = refusal(quality={"rows": 10, "by": ["ward"]}, **by_row)
    assert sorted(found) == ["quality.by", "quality.rows"]
    assert all("no use with `privacy_unit: row`" in what for what in found.values())
    assert spec(quality={}, **by_row).quality is not None


def test_a_family_tells_cut_rows_by_the_axes_that_its_tables_have() -> None:
    family = {"mechanism": "tables", "tables": {"list": [["age"]]}, "axes": [AGE, WARD]}
    assert spec(**family, quality={"by": ["age"]}).quality is not None
    assert refusal(**family, quality={"by": ["ward"]}) == {
        "quality.by[0]": "'ward' is an axis that no table has. Known: age."
    }


def test_only_where_a_quality_table_can_be_bought_is_one_spoken_of() -> None:
    assert spec().remarks == spec(engine="spark", source="rows/*.parquet").remarks == [UNSEEN_CUT]
    assert quality_left_out(spec(engine="spark", source="rows/*.parquet"), "week") == []
    (told,) = quality_left_out(spec(), "week")
    bought = spec(quality={"share": "1/20", "rows": 10})
    assert f"{rows_for_quality(bought):,} rows or more; with fewer, do without it." in told
    assert quality_left_out(bought, "week") == []


def test_letters_beyond_ascii_in_a_csv_file_are_said_to_be_read_as_utf_8() -> None:
    axes = [{"column": "genus", "values": ["Historia", "Poësis"]}]
    said = [remark for remark in spec(source="loans.csv", axes=axes).remarks if "UTF-8" in remark]
    assert len(said) == 1 and "'genus'" in said[0] and "csv_encoding: windows-1252" in said[0]
    plain = [{"column": "genus", "values": ["Historia"]}]
    for fields in (
        {"source": "loans.parquet", "axes": axes},
        {"source": "loans.csv", "axes": plain},
        {"source": "loans.csv", "axes": axes, "csv_encoding": "latin-1"},
    ):
        assert not [remark for remark in spec(**fields).remarks if "UTF-8" in remark]


def test_the_mechanism_gets_what_quality_leaves_exactly() -> None:
    made = spec(epsilon="1/3", quality={"share": "1/7"})
    assert made.mechanism_epsilon == Fraction(2, 7)
    assert spec(epsilon="1/3").mechanism_epsilon == Fraction(1, 3)


def test_a_mechanism_that_cannot_serve_the_rest_is_refused() -> None:
    assert spec(epsilon="0.000001", max_rows_per_unit=10).epsilon
    assert "quality.share" in refusal(epsilon="0.000001", max_rows_per_unit=9, quality={})


def test_under_substitution_two_units_move_the_numbers_of_a_quality_table() -> None:
    alone, substituted = (
        half_widths(spec(quality={}, **more)) for more in ({"epsilon": "1/2"}, {**SUBSTITUTE, "epsilon": 1})
    )
    assert {name: alone[name] for name in ("rows", "units")} == {name: substituted[name] for name in ("rows", "units")}
    assert substituted["cut"] < alone["cut"], "one number, which either unit moves by as much"


def test_quality_is_in_the_digest_only_where_it_is_declared() -> None:
    without, with_it = spec(), spec(quality={"by": ["ward"]})
    assert "quality" not in without.digest_facts
    assert without.digest == spec(quality=None).digest != with_it.digest
    assert with_it.digest_facts["quality"] == {"share": "1/20", "rows": 10, "by": ["ward"]}
    assert with_it.digest == spec(quality={"share": 0.05, "rows": 10, "by": ["ward"]}).digest
    assert spec(axes=[AGE, WARD], quality={"rows": 11}).digest != spec(quality={}).digest


def test_each_axis_that_tells_cut_rows_has_a_table_of_its_own_share() -> None:
    assert [quality.tables(quality.QualitySpec(by=by), by_row=False) for by in ((), ("ward",), ("ward", "age"))] == [
        4,
        5,
        6,
    ]
    assert quality.tables(quality.QualitySpec(), by_row=True) == 2
