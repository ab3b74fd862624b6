"""`latest/`: every cell of every period once, through revisions, withdrawals, families, damage and long histories."""

from __future__ import annotations

import csv
import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from by_hand import WARD
from office import Office

from dphist_pipeline.answering import latest_cells
from dphist_pipeline.answering.exports.formats import write_export
from dphist_pipeline.answering.exports.rows import Exported
from dphist_pipeline.answering.latest_cells import write_latest_cells
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.public_names import is_path
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, PublishedFolder

pytestmark = pytest.mark.draws_alike

WEEKS = ("2026-03-02", "2026-03-09")
AGE: dict[str, Any] = {"column": "age", "start": 0, "stop": 60, "width": 20, "above": True, "other": True}
AXES = [AGE, WARD]
FILES = ["cells.csv", "cells.parquet", "cells.xlsx"]


@pytest.fixture
def public(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "public"


def publish(public: Path, period: str = WEEKS[0], revision: int = 1, axes: list[dict[str, Any]] = AXES) -> Path:
    return by_hand.publish(public, by_hand.estimate(axes), axes, period=period, revision=revision).path


def made(public: Path) -> list[str]:
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    write_latest_cells(public, public.parent / "scratch")
    return sorted(str(path.relative_to(public / "weekly/latest")) for path in public.glob("weekly/latest/**/cells.*"))


def rows(public: Path, name: str = "cells.parquet") -> list[dict[str, Any]]:
    return pq.read_table(public / "weekly" / "latest" / name).to_pylist()


@pytest.mark.slow
def test_each_period_stands_there_once_with_labels_that_are_never_null(public: Path) -> None:
    for period, revision in ((WEEKS[0], 1), (WEEKS[0], 2), (WEEKS[1], 1)):
        publish(public, period, revision)
    assert made(public) == FILES
    found, cells = rows(public), pq.read_table(publish(public, WEEKS[1], 3) / "histogram.parquet").to_pylist()
    assert [(row["period"], row["revision"]) for row in found] == [(WEEKS[0], 2)] * len(cells) + [(WEEKS[1], 1)] * len(
        cells
    )
    for row, cell in zip(found[len(cells) :], cells, strict=True):
        assert cell["unbiased_estimate"] == row["unbiased"] and cell.pop("group_id") is None
        assert {**row, **cell, "unbiased_estimate": row["unbiased"]} == row | {"unbiased_estimate": row["unbiased"]}
    assert all(row["ward_label"] and row["age_label"] for row in found)
    assert {row["ward_label"] for row in found if row["ward"] is None} == {"other"}
    opened = [row for row in found if row["age_label"] == "60 or more"]
    assert opened and all((row["age_from"], row["age_to"]) == (60, np.inf) for row in opened)
    with (public / "weekly/latest/cells.csv").open(newline="") as file:
        told = list(csv.DictReader(file))
    assert [*told[0]] == [*found[0]] and [(row["ward_label"], float(row["estimate"])) for row in told] == [
        (row["ward_label"], round(row["estimate"])) for row in found
    ]
    assert (
        "never null"
        in pq.read_schema(public / "weekly/latest/cells.parquet").field("ward_label").metadata[b"comment"].decode()
    )


def test_every_number_of_the_csv_is_one_to_a_spreadsheet(public: Path) -> None:
    publish(public)
    made(public)
    with (public / "weekly/latest/cells.csv").open(newline="") as file:
        told = list(csv.DictReader(file))
    opened = [row for row in told if row["age_label"] == "60 or more"]
    assert opened and all((row["age_from"], row["age_to"]) == ("60", "") for row in opened)
    for column in ("age_from", "age_to", "age_order", "estimate", "unbiased", "ci_lower", "ci_upper"):
        assert all(re.fullmatch(r"(-?[0-9.]+(e[+-]?[0-9]+)?)?", row[column]) for row in told), column


@pytest.mark.slow
def test_the_file_itself_says_what_it_holds_and_what_each_column_is(public: Path) -> None:
    for revision in (1, 2):
        publish(public, WEEKS[0], revision)
    publish(public, WEEKS[1])
    made(public)
    file = str(public / "weekly/latest/cells.parquet")
    with duckdb.connect() as connection:
        asked = "SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)"
        told = dict(connection.execute(asked, [file]).fetchall())
    assert (told["release"], told["periods"], told["revisions"]) == ("weekly", ", ".join(WEEKS[:2]), "2, 1")
    columns = json.loads(told["columns"])
    assert [*columns] == pq.read_schema(file).names and "day after the last" in columns["period_end"]


def test_periods_have_the_local_days_of_their_ends(public: Path) -> None:
    ends = {"period_start": "2026-03-02T00:00:00+01:00", "period_end": "2026-03-09T00:00:00+01:00"}
    by_hand.publish(public, by_hand.estimate(AXES), AXES, period=WEEKS[0], **ends)
    made(public)
    assert {(row["period_start"], row["period_end"]) for row in rows(public)} == {(date(2026, 3, 2), date(2026, 3, 9))}


def test_a_filter_and_a_grouping_by_label_lose_no_row(public: Path) -> None:
    publish(public)
    made(public)
    file = public / "weekly" / "latest" / "cells.parquet"
    with duckdb.connect() as connection:
        asked = (
            "SELECT sum(estimate), sum(estimate) FILTER (ward_label <> 'surgery'), sum(estimate) FILTER (age_to > 60)"
        )
        total, rest, old = connection.execute(f"{asked} FROM '{file}'").fetchall()[0]
        cells = f"FROM '{file.parents[1]}/period={WEEKS[0]}/revision=1/histogram.parquet'"
        alone = "sum(estimate) FILTER (ward = 'surgery'), sum(estimate) FILTER (age_lower = 60)"
        expected, surgery, above = connection.execute(f"SELECT sum(estimate), {alone} {cells}").fetchall()[0]
    assert (
        total == pytest.approx(expected) and rest == pytest.approx(expected - surgery) and old == pytest.approx(above)
    )


@pytest.mark.slow
def test_what_was_withdrawn_leaves_and_nothing_is_written_twice(public: Path) -> None:
    first = publish(public)
    publish(public, WEEKS[1])
    made(public)
    file = public / "weekly" / "latest" / "cells.parquet"
    before = file.stat().st_ino
    made(public)
    assert file.stat().st_ino == before
    for name in ("cells.csv", "cells.xlsx"):
        (public / "weekly/latest" / name).unlink()  # a run that was killed
        assert made(public) == FILES
    scratch = public.parent / "scratch"
    PublishedFolder(first).mark_withdrawn({"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}, scratch)
    made(public)
    assert {row["period"] for row in rows(public)} == {WEEKS[1]}
    PublishedFolder(public / f"weekly/period={WEEKS[1]}/revision=1").mark_withdrawn(
        {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 2},
        scratch,
    )
    assert made(public) == FILES and rows(public) == []
    assert (public / "weekly/latest/cells.csv").read_text().startswith("period,revision,")
    assert (public / "weekly/latest/cells.xlsx").read_bytes() == b"", "a workbook of nothing is no file at all"


@pytest.mark.slow
def test_a_long_history_has_a_file_for_each_period(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(public)
    made(public)
    monkeypatch.setattr(latest_cells, "MOST_ROWS", 20)
    publish(public, WEEKS[1])
    assert made(public) == [*FILES, *(f"period={week}/{name}" for week in WEEKS for name in FILES)]
    assert rows(public) == []
    assert {row["period"] for row in rows(public, f"period={WEEKS[0]}/cells.parquet")} == {WEEKS[0]}


def test_a_revision_with_other_axes_stands_beside_the_others(public: Path) -> None:
    publish(public)
    publish(public, WEEKS[1], axes=[{**WARD, "column": "age", "name": "age"}])
    made(public)
    assert {row["period"]: row["ward_label"] is None for row in rows(public)} == {WEEKS[0]: False, WEEKS[1]: True}


def test_an_axis_that_is_called_as_anothers_label_keeps_its_values(public: Path) -> None:
    publish(public, axes=[WARD, {"column": "x", "values": ["p", "q"], "name": "ward_label"}])
    made(public)
    assert {row["ward_label"] for row in rows(public)} == {"p", "q"}


@pytest.mark.slow
def test_damaged_cells_are_not_copied(public: Path) -> None:
    folder = publish(public)
    made(public)
    publish(public, WEEKS[1])
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    content = (folder / "histogram.parquet").read_bytes()
    (folder / "histogram.parquet").write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    with pytest.raises(PublishedFilesDamaged, match=r"is not what was published|damaged"):
        write_latest_cells(public, public.parent / "scratch")
    assert {row["period"] for row in rows(public)} == {WEEKS[0]}


def test_a_text_that_begins_a_formula_is_none_in_csv(public: Path) -> None:
    publish(public, axes=[{"column": "ward", "values": ["=1+1", "@x", "a-b", "＝1+1", "a＝b"], "other": True}])
    made(public)
    text = (public / "weekly/latest/cells.csv").read_text()
    assert "'=1+1" in text and "'@x" in text and "'a-b" not in text
    assert "'＝1+1" in text and "'a＝b" not in text
    assert "=1+1" in {row["ward_label"] for row in rows(public)}


@pytest.mark.slow
def test_a_release_writes_them_and_a_bucket_gets_them(office: Office) -> None:
    office.with_release()
    public = office.store / "public"
    sent = [path for path, _ in DerivedFiles(public).there()]
    assert {f"wards/latest/{name}" for name in FILES} <= {*sent} and all(map(is_path, sent))
    assert not any(map(is_path, ("wards/latest/../cells.csv", "wards/latest/x/y/cells.csv", "latest/cells.csv")))


def test_a_host_without_the_extra_leaves_no_workbook_of_an_earlier_state(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(public)
    made(public)
    sheet = public / "weekly/latest/cells.xlsx"
    assert sheet.stat().st_size
    monkeypatch.setattr(latest_cells, "find_spec", lambda name: None)
    publish(public, WEEKS[1])
    made(public)
    assert sheet.read_bytes() == b""
    monkeypatch.undo()
    made(public)
    assert sheet.stat().st_size, "the next host that has it writes it"


def test_the_csv_is_the_file_that_the_command_exports(public: Path, tmp_path: Path) -> None:
    for period, revision in ((WEEKS[0], 1), (WEEKS[0], 2), (WEEKS[1], 1)):
        publish(public, period, revision)
    made(public)
    for to in ("csv", "xlsx", "parquet"):
        write_export(Exported.read(public, "weekly"), to, tmp_path / f"x.{to}")
    latest = public / "weekly/latest"
    assert (tmp_path / "x.csv").read_bytes() == (latest / "cells.csv").read_bytes()
    assert (tmp_path / "x.xlsx").read_bytes() == (latest / "cells.xlsx").read_bytes()
    assert pq.read_table(tmp_path / "x.parquet").equals(pq.read_table(latest / "cells.parquet"))


@pytest.mark.slow
def test_periods_that_came_one_by_one_give_the_bytes_of_all_at_once(public: Path) -> None:
    """Also where a period in the middle is revised, another one has other axes or columns, and one is withdrawn."""
    three = ("2026-02-23", *WEEKS)
    other = [{**WARD, "column": "age", "name": "age"}]
    steps = [(three[1], 1, AXES), (three[0], 1, AXES), (three[2], 1, other), (three[1], 2, AXES), (three[0], 2, other)]
    scratch = public.parent / "scratch"
    for period, revision, axes in [*steps, (three[2], 1, other)]:
        folder = public / f"weekly/period={period}/revision={revision}"
        if folder.exists():
            note = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}
            PublishedFolder(folder).mark_withdrawn(note, scratch)
        else:
            publish(public, period, revision, axes)
        made(public)
        added = {name: (public / "weekly/latest" / name).read_bytes() for name in FILES}
        write_latest_cells(public, scratch, anew=True)
        assert {name: (public / "weekly/latest" / name).read_bytes() for name in FILES} == added, (period, revision)


def test_rows_of_earlier_periods_are_taken_over_unless_a_file_is_damaged(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(public)
    made(public)
    computed: list[str] = []
    tables = Exported.tables

    def counted(exported: Exported) -> Any:
        if not exported.held:
            computed.extend(one.audit["period"] for one in exported.publications)
        return tables(exported)

    monkeypatch.setattr(Exported, "tables", counted)
    publish(public, WEEKS[1])
    made(public)
    assert computed == [WEEKS[1]] and {row["period"] for row in rows(public)} == {*WEEKS}
    for name in ("cells.csv", "cells.parquet"):
        file, revision = public / "weekly/latest" / name, len(computed)
        content = file.read_bytes()
        file.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
        computed.clear()
        publish(public, WEEKS[1], revision + 1)
        made(public)
        assert computed == [*WEEKS], name


def test_files_of_a_long_history_hold_no_workbook(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(public)
    made(public)
    monkeypatch.setattr(latest_cells, "MOST_IN_SHEET", 20)
    publish(public, WEEKS[1])
    made(public)
    assert (public / "weekly/latest/cells.xlsx").read_bytes() == b"" and len(rows(public)) > 20
