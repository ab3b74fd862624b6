"""A release of a data frame: what operators allow, what is charged, and what happens where no frame is handed over."""

from __future__ import annotations

import logging
from typing import Any

import dagster as dg
import duckdb
import polars as pl
import pytest
from error_codes import coded, ledger_refuses
from office import OPEN_HEALTH, RECORDS, Office
from orchestrated import charges, defined, public_files
from refusing import check_changes_nothing

import dphist_pipeline as dph
from dphist_pipeline.errors import Halted
from dphist_pipeline.releasing.frames import FrameMissing

pytestmark = pytest.mark.draws_alike

FRAME = {"source": "frame:admissions"}
SECRET = "Zacharias"


@pytest.fixture
def framed(office: Office) -> Office:
    """An office whose spec names a frame, and whose operator allows it."""
    office.opened().write_spec(**FRAME)
    return office


def released(office: Office, frame: Any = None, **more: Any) -> dph.Release:
    return dph.release(dph.load_spec(office.folder / "spec.yaml", office.store), office.store, frame=frame, **more)


@pytest.mark.slow
def test_a_frame_is_charged_and_published_and_its_replay_needs_no_frame(framed: Office) -> None:
    left: dict[str, list[Any]] = {}

    def look(step: str) -> None:
        left[step] = list((framed.store / "confidential").rglob("*.parquet"))

    made = released(
        framed, duckdb.connect().sql(f"SELECT '{SECRET}' AS patient, 30.0 AS age, '{SECRET}' AS ward"), progress=look
    )
    assert left["bounding and counting"] and not left["charging the account"]
    held = [path for path in framed.folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == [] and not list((framed.store / "confidential").rglob("frame*"))
    files = public_files(framed)
    assert not made.replayed and charges(framed) == 1 and made.table.height == 21
    assert made.audit["allowed"][0]["kind"] == "source" and made.audit["unit_columns"] == ["patient"]
    for again in (None, pl.DataFrame(RECORDS), object()):
        assert released(framed, again).replayed
    assert framed.released("--json").json["replayed"] and public_files(framed) == files and charges(framed) == 1


@pytest.mark.slow
def test_a_frame_gives_the_counts_of_a_file_with_the_same_rows(framed: Office) -> None:
    framed.write_spec(**FRAME, epsilon=50, max_rows_per_unit=1, mechanism="geometric")
    framed.run("ledger", "raise", "health", "--total", "100", "--reason", "a test", "--store", framed.store)
    records = {**RECORDS, "patient": [1, 2, 3, 4]}
    by_frame = released(framed, pl.DataFrame(records)).table["estimate"]
    framed.write_records(records)
    framed.write_spec(epsilon=50, max_rows_per_unit=1, release="files")
    by_file = released(framed).table["estimate"]
    assert by_frame.round().to_list() == by_file.round().to_list() and by_file.sum() == 4


@pytest.mark.slow
def test_columns_of_several_periods_and_a_query_are_read_from_a_frame(framed: Office) -> None:
    (framed.folder / "q.sql").write_text("SELECT * EXCLUDE (ward), lower(ward) AS ward FROM source", "utf-8")
    weekly = {"period": "week", "period_column": "day", "period_format": "iso", "source_sql": "q.sql"}
    framed.write_spec(**FRAME, **weekly)
    frame = pl.DataFrame({**RECORDS, "day": ["2026-03-02", "2026-03-08", "2026-03-09", None]})
    assert released(framed, frame, period="2026-03-02").audit["period"] == "2026-03-02"
    assert charges(framed) == 1


@pytest.mark.slow
def test_the_command_line_has_no_frame_and_says_so(framed: Office) -> None:
    says = ("source frame:admissions: is a data frame that a Python program hands over", "dph.release(spec, store, ")
    check_changes_nothing(framed, framed.release, *says)
    assert "a data frame that a Python program" in framed.run("check", framed.folder / "spec.yaml").out
    assert framed.run("rehearse", framed.folder / "spec.yaml").code == 0


def test_dagster_has_no_frame_and_says_so(framed: Office) -> None:
    run = dg.materialize(list(defined(framed, **FRAME).assets or []), raise_on_error=False)
    failures = [str(event.step_failure_data) for event in run.all_events if event.is_step_failure]
    assert "a data frame that a Python program hands over" in failures[0] and charges(framed) == 0


def test_a_program_without_a_frame_or_with_one_too_many_spends_nothing(framed: Office) -> None:
    with pytest.raises(FrameMissing, match="frame=people"):
        released(framed)
    framed.write_spec()
    with pytest.raises(
        Halted, check=coded("frame_unexpected"), match=r"data/admissions\.parquet: is what the spec reads"
    ):
        released(framed, pl.DataFrame(RECORDS))
    assert charges(framed) == 0


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pl.DataFrame({"patient": ["ann"], "age": [3.0]}), "column 'ward' is not in the frame"),
        (pl.DataFrame({**RECORDS, "age": [[1]] * 4}), "column 'age' has type BIGINT[]"),
        ({"age": [3]}, "must be a Polars or pandas frame, an Arrow table, a DuckDB relation"),
        (pl.LazyFrame({**RECORDS, "age": [SECRET] * 4}).cast({"age": pl.Int8}), "could not be computed"),
    ],
)
def test_a_frame_that_cannot_serve_spends_nothing(framed: Office, frame: Any, says: str, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(dph.DphistError) as refused:
        released(framed, frame)
    assert says in str(refused.value) and SECRET not in f"{refused.value}{caplog.text}"
    assert refused.value.__context__ is None and charges(framed) == 0
    assert not list((framed.store / "confidential").rglob("*.parquet"))


def test_a_path_in_place_of_a_spec_is_told_how_to_load_it(framed: Office) -> None:
    with pytest.raises(TypeError, match=r"takes a spec, as load_spec\(path\) gives it, not a str"):
        dph.release("spec.yaml", framed.store)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_frame_must_be_allowed_by_its_name_and_with_its_unit(office: Office) -> None:
    office.opened().write_attributes_alone(**FRAME)
    with ledger_refuses("not_allowed", match="dphist ledger allow health --source frame:admissions"):
        released(office, pl.DataFrame(RECORDS))
    allowed = office.run("ledger", "allow", "health", "--source", "frame:admissions", "--store", office.store)
    assert allowed.code == 0, allowed.err
    office.write_attributes_alone(**FRAME, unit_normalise=["trim"])
    with ledger_refuses("not_allowed", match="unit_normalise"):
        released(office, pl.DataFrame(RECORDS))
    office.write_attributes_alone(**FRAME)
    assert not released(office, pl.DataFrame(RECORDS)).replayed


def test_a_name_of_a_frame_belongs_to_one_account(framed: Office) -> None:
    framed.run("ledger", "open", "other", *OPEN_HEALTH[2:], "--store", framed.store)
    ran = framed.run("ledger", "allow", "other", "--source", "frame:admissions", "--store", framed.store)
    assert ran.code == 1 and "health" in ran.err and "SourceOfAnother" not in ran.err


@pytest.mark.parametrize("source", ["frame:", "FRAME:a", "frame:{period}"])
def test_a_name_of_a_frame_is_plain(office: Office, source: str) -> None:
    office.opened().write_spec(source=source)
    check_changes_nothing(office, office.release, "attributes.source: is a data frame", "name it `frame:NAME`")


def test_the_environment_names_no_frame(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHICH", "frame:admissions")
    office.opened().write_spec(source="{{ env.WHICH }}")
    check_changes_nothing(office, office.release, "attributes.source: is a data frame")
