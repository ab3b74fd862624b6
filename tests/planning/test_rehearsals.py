"""`dphist rehearse`: the whole path on invented records, in a store that is gone afterwards."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from declared_lists import declare_project_folders
from office import DERIVED, FILES, OPEN_HEALTH, WARD, Office
from planned import BY_MONTH, CODES, DAYS, KINDS, QUERY
from refusing import check_changes_nothing

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.workbench.planning.rehearsal import NOTE, invent
from examples import mostly_soaked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("catalogue", "pictures", why="releases of invented records, which are thrown away"),
]

ROWS = 600
OF_EACH_KIND = (
    "several columns name a unit",
    "code list",
    "period and calendar by one column",
    "csv as written in France",
    "server",
    "query",
)


@pytest.fixture(autouse=True)
def own_temporary_folder(office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """After the office, whose first one in a process is made in the usual folder."""
    monkeypatch.setenv("OFFICE", "host=hidden.example")
    declare_project_folders(monkeypatch)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def write(office: Office, **changes: Any) -> None:
    (office.folder / "codes.csv").write_text(CODES)
    (office.folder / "rows.sql").write_text(QUERY)
    office.write_spec(**{"epsilon": 20, "max_rows_per_unit": 3, **changes})


@pytest.mark.parametrize("kind", mostly_soaked(KINDS, [list(KINDS).index(kind) for kind in OF_EACH_KIND]))
def test_every_kind_of_spec_can_be_rehearsed_and_its_invented_rows_are_counted(
    office: Office, own_temporary_folder: Path, kind: str
) -> None:
    write(office, **KINDS[kind])
    before = office.state()
    ran = office.run("rehearse", "spec.yaml", "--rows", str(ROWS), "--json", *in_2026(kind))
    assert (ran.code, ran.err) == (0, "")
    told = ran.json
    spec = ReleaseSpec.load("spec.yaml")
    assert told["note"] == NOTE and told["cells"] == spec.domain.cells
    assert list(told["columns"])[: -len(OURS)] == [column for axis in spec.axes for column in axis.columns]
    latest = {
        "cells.parquet",
        "cells.csv",
        "cells.xlsx",
        "index.html",
        "script.js",
        "release.js",
        "cells.js",
    }  # made with the catalogue, for which this module has a stand-in
    assert {Path(name).name for name in told["files"]} | latest == {*FILES, *DERIVED}
    # Noise of scale 3/20 a cell: what is missing was dropped as null, undeclared, of another period, or too much.
    assert ROWS / 4 < told["answers"][0]["estimate"] < ROWS + 50
    assert "hidden" not in ran.out
    assert office.state() == before and list(own_temporary_folder.iterdir()) == []


OURS = ("estimate", "unbiased_estimate", "ci_lower", "ci_upper", "group_id")


def in_2026(kind: str) -> list[str]:
    return ["--period", "2026-03-01"] if "period" in KINDS[kind] else []


@pytest.mark.parametrize(
    ("period", "key"),
    [
        *(("week", "2026-W10"), ("quarter", "2026-04-01"), ("year", "8000-01-01"), ("week", "1000-01-06")),
    ],
)
def test_every_period_can_be_rehearsed_even_one_to_come(office: Office, period: str, key: str) -> None:
    write(office, **{**BY_MONTH, "period": period, "release_delay_days": 9})
    told = office.run("rehearse", "spec.yaml", "--rows", "300", "--period", key, "--json").json
    assert told["period"] == ("2026-03-02" if "W" in key else key)
    assert told["answers"][0]["estimate"] > 50


def test_the_latest_finished_period_is_rehearsed_unless_another_is_named(office: Office) -> None:
    write(office, **BY_MONTH)
    told = office.run("rehearse", "spec.yaml", "--rows", "10", "--json").json
    assert told["period"] < "2100" and told["period"].endswith("-01")


def test_the_offices_own_ledger_is_not_used_even_where_the_environment_names_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = office.folder / "own.sqlite"
    monkeypatch.setenv("DPHIST_LEDGER", f"sqlite:///{ledger}")
    for words in (["init"], ["ledger", *OPEN_HEALTH]):
        assert office.run(*words).code == 0
    write(office)
    before = (ledger.read_bytes(), ledger.stat().st_mtime_ns)
    assert office.run("rehearse", "spec.yaml", "--rows", "20").code == 0
    assert (ledger.read_bytes(), ledger.stat().st_mtime_ns) == before
    assert office.run("ledger", "show", "health", "--json").json[0]["charges"] == []


def test_a_kept_rehearsal_can_be_asked_and_says_what_it_is(office: Office) -> None:
    write(office)
    ran = office.run("rehearse", "spec.yaml", "--rows", "50", "--keep", "kept")
    assert ran.out.startswith("Every number below is invented. Your source was not opened")
    assert "dphist answer wards --store" in ran.out
    asked = office.run("answer", "wards", "--store", "kept/store", "--json")
    assert asked.code == 0 and asked.json["cells"] == 21
    assert "every number is invented" in (office.folder / "kept" / "REHEARSAL.txt").read_text()
    check_changes_nothing(office, lambda: office.run("rehearse", "spec.yaml", "--keep", "kept"), "name a new folder")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.yaml"], "there is no such file"),
        (["spec.yaml", "--period", "2026-03-02"], "its only period is 'all'"),
        (["spec.yaml", "--rows", "0"], "--rows"),
        (["spec.yaml", "--keep", "spec.yaml"], "no rehearsal: spec.yaml cannot be made"),
        (["spec.yaml", "--keep", "no/such/folder"], "cannot be made: No such file"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_in_one_message(office: Office, words: list[str], says: str) -> None:
    write(office)
    check_changes_nothing(office, lambda: office.run("rehearse", *words, "--json"), says)


def test_a_failed_rehearsal_leaves_nothing_behind(office: Office, own_temporary_folder: Path) -> None:
    write(office, source="x.csv", csv_quote="none", axes=[{"column": "a,b", "name": "town", "values": ["x"]}])
    ran = office.run("rehearse", "spec.yaml", "--json")
    assert ran.code == 1 and "declare `csv_quote: rfc`" in ran.err
    assert list(own_temporary_folder.iterdir()) == []


def test_what_is_not_rehearsed_and_what_cannot_work_is_said(office: Office) -> None:
    write(office, **KINDS["query"])
    assert any("the query in rows.sql" in one for one in remarks(office))
    write(office, **KINDS["server"])
    assert any("reading a database" in one for one in remarks(office))
    write(office, source="x.csv", csv_quote="none", axes=[{"column": "town", "values": ["a,b", "c"]}])
    assert any("no row can have the categories of town that hold ','" in one for one in remarks(office))
    days = {**DAYS, "format": "iso"}
    write(office, **{**KINDS["period and calendar by one column"], "axes": [days], "period_format": "%d/%m/%Y"})
    assert any("`period_format` names another form" in one for one in remarks(office))


def remarks(office: Office) -> list[str]:
    found: list[str] = office.run("rehearse", "spec.yaml", "--rows", "20", "--json").json["remarks"]
    return found


def test_invented_records_hold_all_that_real_ones_may(office: Office) -> None:
    write(office, **BY_MONTH)
    spec = ReleaseSpec.load("spec.yaml")
    made = invent(spec, spec.period_named("2026-03-01"), 2000).columns
    units = [unit for unit in made["patient"] if unit is not None]
    most = max(units.count(unit) for unit in set(units))
    assert most > spec.max_rows_per_unit and None in made["patient"]
    months = {str(moment)[:7] for moment in made["admitted"] if moment is not None}
    assert months >= {"2026-02", "2026-03", "2026-04"} and None in made["admitted"]
    assert set(made["ward"]) == {"surgery", "medicine", "not declared", None}
    numbers = [number for number in made["age"] if isinstance(number, float)]
    assert min(numbers) < 0 and max(numbers) > 100 and None in made["age"]
    assert invent(spec, spec.period_named("2026-03-01"), 2000).columns == made


def test_rows_lie_in_the_days_that_a_release_looks_back_to(office: Office) -> None:
    gap = {"name": "gap", "of_unit": "days_since", "within": "90 days", "edges": [0, 31, 91], "other": True}
    write(office, **{**BY_MONTH, "axes": [WARD, gap]})
    spec = ReleaseSpec.load("spec.yaml")
    made = invent(spec, spec.period_named("2026-03-01"), 2000).columns["admitted"]
    months = [str(moment)[:7] for moment in made if moment is not None]
    assert {"2025-12", "2026-01", "2026-02", "2026-03", "2026-04"} <= set(months)
    assert min(map(str, filter(None, made))) >= "2025-12-01" and months.count("2026-03") > 400
