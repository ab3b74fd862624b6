"""Names that would stand for something else than they seem to: in the catalogue, in answers, on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attacked import spec
from office import RECORDS, WARD, Office
from refusing import check_changes_nothing

from dphist_pipeline.spec import fields
from dphist_pipeline.spec.mistakes import SpecError

pytestmark = pytest.mark.draws_alike

AGE = {"column": "age", "start": 0, "stop": 100, "width": 50, "other": True}
FAMILY: dict[str, Any] = {"release": "family", "mechanism": "tables", "axes": [WARD, AGE], "epsilon": "1/2"}


@pytest.fixture
def office(office: Office, monkeypatch: pytest.MonkeyPatch) -> Office:
    monkeypatch.chdir(office.folder)
    return office.opened()


@pytest.mark.slow
def test_a_family_grows_a_table_in_front_of_a_release_of_others(office: Office):
    office.write_spec(**FAMILY, tables={"list": [["age"]]})
    office.released()
    office.write_spec(release="family_ward", axes=[WARD])
    office.released()
    office.write_spec(**FAMILY, tables={"list": [["age"], ["ward"]]})
    words = ("--revise", "--reason", "one more table")
    says = "'family' would need the name family_ward in the catalogue, which belongs to 'family_ward'"
    check_changes_nothing(office, lambda: office.release(*words), says)
    assert "would need the name family_ward" in office.run("check", office.folder / "spec.yaml").err
    office.write_spec(**FAMILY, tables={"list": [["age"], ["age", "ward"]]})
    office.released(*words)
    assert "Already published" in office.released(*words).out


@pytest.mark.parametrize("name", fields.ANSWER_COLUMNS)
def test_an_axis_or_a_level_stands_in_the_place_of_a_column_of_answers(tmp_path: Path, name: str):
    ward = {"column": "ward", "values": ["a", "b"]}
    for axis in ({**ward, "name": name}, {**ward, "levels": {name: ["u", "u"]}}):
        with pytest.raises(
            SpecError, match=f"its published column '{name}' clashes with the one that every answer has"
        ):
            spec(tmp_path, axes=[axis])


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\u00ad", "\u200d"])
def test_a_category_looks_like_another_one(tmp_path: Path, hidden: str):
    with pytest.raises(SpecError, match=r"repeats values\[0\], case and hidden signs ignored; keep one of them"):
        spec(tmp_path, axes=[{"column": "ward", "values": ["surgery", f"surg{hidden}ery"]}])
    assert spec(tmp_path, axes=[{"column": "ward", "values": ["نمی\u200cدانم", "ja"]}]).domain.cells == 2


@pytest.mark.slow
def test_the_column_of_persons_is_markup_of_the_terminal(office: Office):
    columns = {"[/x]": RECORDS["patient"], "ward": RECORDS["ward"]}
    office.write_records(columns, "data/odd.parquet")
    opened = office.run("ledger", "open", "odd", "--privacy-unit", "[/x]", "--neighbours", "add_remove", "--total", "4")
    assert opened.code == 0, opened.err
    office.write_spec(
        account="odd", source="data/odd.parquet", privacy_unit="[/x]", axes=[WARD], quality={"share": "1/2", "rows": 3}
    )
    office.released()
    told = office.run("quality", "wards")
    assert told.code == 0 and "Rows beyond 2 of each [/x] are not counted" in told.out, told.err
