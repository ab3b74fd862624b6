"""`dphist check --explain`: the whole promise of a release, told without reading any record."""

from __future__ import annotations

import pytest
from declared_lists import declare_project_folders
from office import Office


@pytest.fixture
def office(tmp_path, monkeypatch):
    declare_project_folders(monkeypatch)
    opened = Office(tmp_path / "office").opened()
    (opened.folder / "codes.csv").write_text(
        "code,title,state\n01,Autauga,Alabama\n02,Kodiak,Alaska\n03,Mobile,Alabama\n"
    )
    county = {"column": "county", "values_from": "codes.csv", "values_column": "code", "label_column": "title"}
    month = {"column": "day", "calendar": "month", "start": "2026-01-01", "stop": "2027-01-01", "format": "iso"}
    age = {"column": "age", "start": 0, "stop": 100, "width": 25, "above": True, "other": True}
    opened.write_records({"patient": ["ann"], "age": [3.0], "ward": ["a"], "county": ["01"], "day": ["2026-02-03"]})
    opened.write_spec(axes=[age, {**county, "levels": ["state"]}, month])
    return opened


def explained(office, *more):
    ran = office.run("check", "--explain", office.folder / "spec.yaml", *more)
    assert ran.code == 0, ran.err
    return ran


def test_the_grid_is_told_axis_by_axis(office):
    facts = explained(office, "--json").json
    assert [(axis["name"], axis["cells"]) for axis in facts["axes"]] == [("age", 6), ("county", 3), ("day", 12)]
    assert facts["axes"][0]["bins"].startswith("[0, 25) … [75, 100); everything above; other")
    assert facts["axes"][1]["levels"] == {"state": 2}
    assert facts["axes"][2]["bins"] == "from 2026-01-01 up to 2027-01-01"
    assert facts["cells"] == 6 * 3 * 12


@pytest.mark.slow
def test_the_columns_are_those_that_will_be_published(office):
    import pyarrow.parquet as pq

    told = explained(office, "--json").json["columns"]
    office.released("--store", str(office.store))
    assert pq.read_schema(office.published() / "histogram.parquet").names == told


@pytest.mark.parametrize(
    ("change", "sensitivity", "says"),
    [
        ({}, 2, "at most 2 rows come or go"),
        ({"neighbours": "substitute"}, 4, "as many others take their place"),
        ({"privacy_unit": "row", "max_rows_per_unit": 1}, 1, "each row is a different unit"),
    ],
)
def test_the_sensitivity_is_told_with_its_reason(office, change, sensitivity, says):
    office.write_spec(**change)
    facts = explained(office, "--json").json
    assert facts["sensitivity"] == sensitivity
    assert says in facts["sensitivity_because"]


def test_an_account_is_told_with_what_it_leaves(office):
    account = explained(office, "--json", "--store", office.store).json["account"]
    assert (account["left"], account["total"], account["releases_left"]) == ("10", "10", 20)
    assert "20 more" in explained(office, "--store", office.store).out
    office.write_spec(period="week", period_column="day", period_format="iso", first_period="2026-03-02")
    account = explained(office, "--json", "--store", office.store).json["account"]
    assert account["lasts"].startswith(
        "10 of 10 left: 20 more releases, of the weeks 2026-03-02 to 2026-07-13, the last due on 2026-07-20"
    )
    assert "due on 2026-07-20" in " ".join(explained(office, "--store", office.store).out.split())


@pytest.mark.parametrize(
    ("change", "says"),
    [({"account": "nowhere"}, "nowhere"), ({"neighbours": "substitute"}, "would be refused")],
)
def test_an_account_that_would_refuse_is_told_and_is_no_failure(office, change, says):
    office.write_spec(**change)
    account = explained(office, "--json", "--store", office.store).json["account"]
    assert not account["known"]
    assert says in account["because"]


def test_no_data_is_opened_and_nothing_is_charged(office):
    (office.folder / "data" / "admissions.parquet").unlink()
    before = office.state()
    ran = office.run("check", office.folder / "spec.yaml", "--explain", "--store", office.store)
    assert ran.code == 1 and "no such file" in ran.err
    assert office.state() == before
