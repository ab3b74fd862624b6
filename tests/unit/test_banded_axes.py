"""Bands that a source holds as text: which cell counts them, their order and ends, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import Office
from source_scenario import counted, spec
from spec_scenario import VALID

from dphist_pipeline.confidential.engines._spark_columns import columns_of
from dphist_pipeline.confidential.reading.source import ColumnRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.workbench.planning.rehearsal import _axis_values

# Not in the order of their ends: the numbers give the order.
BANDS = {"[70-80)": 70, "80 and over": 80, "[60-70)": 60, "under 60": 0}
AGE = {"column": "band", "name": "age", "bands": BANDS, "other": True}


def counts(texts: list[str | None], **more: Any) -> list[int]:
    """The counts below 60, 60 to 70, 70 to 80, from 80 on, and of `other`."""
    table = pa.table({"person": range(len(texts)), "band": pa.array(texts, pa.string())})
    return counted({"a.parquet": table}, axes=[{**AGE, **more}])


def declared(**more: Any) -> ReleaseSpec:
    return ReleaseSpec.from_attributes({**VALID, "axes": [{**AGE, **more}]}, Path())


@pytest.mark.slow
def test_texts_are_counted_in_the_order_of_their_ends() -> None:
    texts = ["[60-70)", "[70-80)", "[70-80)", "80 and over", "under 60", "Under 60", "65", "", None]
    assert counts(texts) == [1, 1, 2, 1, 4]
    assert counts(texts, tidy=["trim", "lower"]) == [2, 1, 2, 1, 3]


def test_two_texts_of_one_end_are_one_band() -> None:
    assert counts(["60-69", "[60-70)", "69-60"], bands={**BANDS, "60-69": 60}) == [0, 2, 0, 0, 1]


def test_the_last_band_is_open_unless_stop_says_where_it_ends() -> None:
    lower, upper = declared().domain.axes[0].bounds  # type: ignore[union-attr]
    assert lower.tolist()[:4] == [0, 60, 70, 80] and upper.tolist()[:4] == [60, 70, 80, float("inf")]
    ends = declared(stop="100.5").domain.axes[0].bounds  # type: ignore[union-attr]
    assert ends[1].tolist()[:4] == [60, 70, 80, 100.5] and declared(stop=100).cells == declared().cells == 5


def test_what_is_published_is_the_grid_of_numbers_and_an_audit_gives_it_back() -> None:
    made = declared(tidy=["trim"], whole=True, stop=100)
    assert made.axes[0].columns == ("age_lower", "age_upper")
    assert domain_of(made.as_json()["axes"]) == made.domain
    assert made.domain == declared(whole=True, stop=100, bands={**BANDS, "60-69": "60"}).domain


def test_the_digest_holds_texts_and_ends_and_no_default() -> None:
    plain = declared()
    assert plain.digest == declared(tidy=[], whole=False, stop=None, bands={**BANDS, "[60-70)": "60.0"}).digest
    others = ({"stop": 90}, {"whole": True}, {"tidy": ["trim"]}, {"bands": {**BANDS, "60-69": 60}})
    assert len({plain.digest, *(declared(**more).digest for more in others)}) == 5


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"bands": {}}, "bands: needs at least two bands"),
        ({"bands": {"all": 0}}, "bands: needs at least two bands"),
        ({"bands": ["a", "b"]}, "bands"),
        ({"bands": {"a": "b", "c": 2}}, "bands"),
        ({"bands": {"a": True, "c": 2}}, "bands"),
        ({"bands": {"": 0, "c": 2}}, "bands"),
        ({"bands": {"<b>": 0, "c": 2}}, "bands"),
        ({"bands": {60: 60, "70": 70}}, "bands"),
        ({"bands": {"a": 0, "A": 1}, "tidy": ["lower"]}, "bands[1]: is the same as an earlier one once both are"),
        ({"bands": {"a": 10**15, "b": Fraction(10**15) - Fraction(1, 100)}}, "is the same double"),
        ({"stop": 80}, "stop: 80 must lie above the lower end of every band"),
        ({"whole": True, "bands": {"a": 0, "b": "1.5"}}, "1.5 is not a whole number"),
        ({"tidy": ["trim", "trim"]}, "names a step twice"),
        ({"values": ["a"]}, "values"),
        ({"start": 0}, "start"),
    ],
)
def test_what_makes_no_bands_is_refused_by_its_place(more: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as caught:
        declared(**more)
    assert told in str(caught.value)


GAP = {"[0-20)": 0, "[20-40)": 20, "[60-80)": 60, "80+": 80}


@pytest.mark.parametrize(
    ("bands", "more", "told"),
    [
        (GAP, {}, "bands[1]: '[20-40)' says that it ends at 40, but its band goes from 20 to 60. Name every band betw"),
        ({"0-19": 0, "20-39": 20, "60+": 60}, {"whole": True}, "'20-39' says that it ends at 39, but"),
        ({"1,000 to 1,999": 1000, "5,000+": 5000}, {}, "ends at 1999, but its band goes from 1000 to 5000"),
        ({"-20 - -11": -20, "0 - 9": 0}, {"stop": 10}, "ends at -11, but its band goes from -20 to 0"),
        ({"0,5-0,9": "0.5", "2 bis unter 3": 2}, {"stop": 3}, "ends at 0.9, but its band goes from 0.5 to 2"),
        (
            {"0-19": 0, "20-39": 20},
            {"stop": 50},
            "'20-39' says that it ends at 39, but its band goes from 20 to 50. Cor",
        ),
    ],
)
def test_a_text_that_ends_before_the_next_band_is_refused(
    bands: dict[str, Any], more: dict[str, Any], told: str
) -> None:
    """Else the table says "20 to 59", and rows of 40 to 59 lie in `other`."""
    with pytest.raises(SpecError) as caught:
        declared(bands=bands, **more)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("bands", "more"),
    [
        ({**GAP, "40 to 59": 40}, {}),
        ({"0-19": 0, "20-39": 20}, {"stop": 40}),
        ({"0-40": 0, "41-60": 41, "61+": 61}, {}),
        ({"1.000-1.999": 1000, "2 000 \u2013 4 999": 2000}, {"stop": 5000}),
        ({"-20--11": -20, "\u221210-0": -10}, {"stop": 0}),
        ({"0,5-0,9": "0.5", "[1,2)": 1}, {"stop": 2}),
        ({"0 years": 0, "1 year": 1, "2 and more": 2}, {}),
    ],
)
def test_a_text_may_end_at_the_next_band_or_at_the_last_value_before_it(
    bands: dict[str, Any], more: dict[str, Any]
) -> None:
    assert not [one for one in declared(bands=bands, **more).remarks if "Bands of axis" in one]


@pytest.mark.parametrize(
    "odd", [{"18 months to 2 years": 18, "24": 24}, {"[0-20)": 0, "[30-40)": 20}, {"0-9": 0, "10-19": 10}]
)
def test_check_remarks_on_numbers_that_may_not_be_ends(odd: dict[str, Any]) -> None:
    (remark,) = [one for one in declared(bands=odd).remarks if "Bands of axis 'age'" in one]
    assert "are not the ends that `bands` and `stop` give" in remark and "'[0-20)'" not in remark


@pytest.mark.slow
def test_questions_name_numbers_of_bands(office: Office) -> None:
    """The command line, Python and SQL ask as for bins of numbers."""
    office.opened()
    office.write_records({"patient": [f"p{one}" for one in range(900)], "band": ["[60-70)", "80 and over", "x"] * 300})
    office.write_spec(axes=[{**AGE, "whole": True}], epsilon="5")
    assert office.release().code == 0
    asked = office.run("answer", "wards", "--where", "age >= 60", "--json").json
    assert abs(asked["estimate"] - 600) < 30 and asked["cells"] == 3
    listed = office.run("answer", "wards", "--by", "age").out
    assert "60 to 69" in listed and "80 or more" in listed and listed.index("0 to 59") < listed.index("60 to 69")


def test_spark_reads_bands_as_text_and_refuses_to_tidy_them(tmp_path: Path) -> None:
    table = pa.table({"person": [1], "band": ["x"]})
    pq.write_table(table, tmp_path / "a.parquet")
    footers = [pq.read_metadata(tmp_path / "a.parquet")]

    def columns(**more: Any) -> Any:
        made = spec(tmp_path, axes=[{**AGE, **more}])
        return columns_of(plan_of(made, made.period_named("all")), footers)

    made = columns()
    assert made.value_of(made.plan.domain.axes[0]) == "CAST(`band` AS STRING)"
    with pytest.raises(ColumnRefused, match="is tidied"):
        columns(tidy=["trim"])


def test_invented_records_hold_every_band() -> None:
    drawn = _axis_values(declared().domain.axes[0], 500, np.random.default_rng(1))
    assert {*drawn} == {*BANDS, None, "not declared"}
