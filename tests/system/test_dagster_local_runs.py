"""Runs of a collection under Dagster: they publish what `dphist local publish` would, from what was sent alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import Office
from system.collected import ASSETS, CONSUMERS, Collecting, materialized, shown
from system.orchestrated import said

from dphist_pipeline.local import rounds
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.question import Question
from examples import mostly_soaked

pytestmark = [
    pytest.mark.outside,
    pytest.mark.stand_in("catalogue", "pictures", why="runs of collections, whose catalogue other modules ask"),
]


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    """One instance for all runs, kept in memory."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def collecting(office: Office) -> Collecting:
    """An office that collects, with one file of reports."""
    made = Collecting(office)
    made.answered()
    return made


def ran(collecting: Collecting, instance: dg.DagsterInstance, *names: str, **changes: Any) -> dg.ExecuteInProcessResult:
    """A run that must succeed."""
    run = materialized(collecting.defined(**changes), instance, *names)
    assert run.success, said(run)
    return run


def refused(collecting: Collecting, instance: dg.DagsterInstance, *names: str, **changes: Any) -> str:
    """What a run says that must fail, and change nothing that was published."""
    before = collecting.releases()
    run = materialized(collecting.defined(**changes), instance, *names)
    assert not run.success and collecting.releases() == before
    return said(run)


def test_dagster_publishes_the_bytes_that_the_command_line_would(
    collecting: Collecting, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    other = collecting.office.copied_to(tmp_path / "other")
    ran(collecting, instance)
    published = other.run("local", "publish", other.folder / "collection.yaml", "--store", other.store)
    assert published.code == 0, published.err
    for name in CONSUMERS:
        theirs = {path.name: path.read_bytes() for path in other.published(name).iterdir()}
        assert {path.name: path.read_bytes() for path in collecting.office.published(name).iterdir()} == theirs


def test_runs_again_give_the_same_bytes(collecting: Collecting, instance: dg.DagsterInstance) -> None:
    first = ran(collecting, instance)
    before = collecting.published_files()
    again = ran(collecting, instance)
    assert collecting.published_files() == before and len(before) > 12
    for name in CONSUMERS:
        assert (shown(first, name)["replayed"], shown(again, name)["replayed"]) == (False, True)


def test_steps_run_one_by_one_give_what_one_run_gives(collecting: Collecting, instance: dg.DagsterInstance) -> None:
    for name in ASSETS:
        ran(collecting, instance, name)
    before = collecting.published_files()
    shutil.rmtree(collecting.office.store / "public")
    (collecting.office.store / "public").mkdir()
    ran(collecting, instance)
    assert collecting.published_files() == before


def test_consumers_read_the_tally_and_no_report(collecting: Collecting, instance: dg.DagsterInstance) -> None:
    ran(collecting, instance, "queries", "partition", "reports")
    shutil.rmtree(collecting.office.folder / "reports")
    for name in CONSUMERS:
        ran(collecting, instance, name)
        assert collecting.office.published(name).is_dir()


def test_a_consumer_before_its_reports_is_refused_with_what_to_do(
    collecting: Collecting, instance: dg.DagsterInstance
) -> None:
    assert "is not there yet. Materialize `reports` again" in refused(collecting, instance, "ages_city")


def test_the_steps_show_what_is_wanted_asked_and_sent(collecting: Collecting, instance: dg.DagsterInstance) -> None:
    question = question_of(collecting.declared())
    answered = pq.read_table(collecting.office.folder / "reports" / "first.parquet")
    foreign = answered.slice(0, 3).set_column(0, "question", pa.array(["0" * 16] * 3))
    short = pa.table({"question": [question.digest[:16]], "report_id": [b"i" * 16], "report": [b"lo"]})
    for name, rows in {"again": answered.slice(0, 5), "foreign": foreign, "short": short}.items():
        pq.write_table(rows, collecting.office.folder / "reports" / f"{name}.parquet")
    run = ran(collecting, instance)
    wanted = shown(run, "queries")
    assert [record.data for record in wanted["consumers"].records] == [
        {"name": "city", "release": "ages_city", "epsilon": "2", "intervals": 4},
        {"name": "state", "release": "ages_state", "epsilon": "1", "intervals": 2},
    ]
    asked = shown(run, "partition")
    assert (asked["digest"], asked["epsilon"], asked["bits_per_contributor"]) == (question.digest, "1", 5)
    sent = shown(run, "reports")
    assert (sent["accepted"], sent["refused"], sent["question"]) == (400, 9, question.digest[:16])
    refusals = {record.data["why"]: record.data["reports"] for record in sent["refusals"].records}
    assert refusals == {"unreadable": 0, "other question": 3, "wrong length": 1, "malformed": 0, "duplicate": 5}
    for name in CONSUMERS:
        found = shown(run, name)
        assert found["epsilon"] == "1" and found["reports"] == 400
        assert found["protects"] == "each contributor with up to 1 value (local)"
        assert found["overview"].startswith("![by ") and "](data:image/svg+xml;base64," in found["overview"]
        assert str(collecting.office.published(name)).endswith(found["files"])


def test_the_question_is_the_one_that_the_command_line_gives_to_contributors(
    collecting: Collecting, instance: dg.DagsterInstance
) -> None:
    ran(collecting, instance, "queries", "partition")
    given = collecting.office.folder / "question.json"
    assert collecting.office.run("local", "plan", collecting.spec_file, "--question", given).code == 0
    asked = collecting.place / "all" / "question.json"
    assert asked.read_bytes() == given.read_bytes()
    assert Question.from_json(asked.read_bytes()) == question_of(collecting.declared())
    assert asked.stat().st_mode & 0o777 == 0o644 and asked.parent.stat().st_mode & 0o777 == 0o755


def test_more_reports_need_a_revision_by_a_person_which_dagster_then_replays(
    collecting: Collecting, instance: dg.DagsterInstance
) -> None:
    ran(collecting, instance)
    collecting.answered("late")
    assert "--revise --reason" in refused(collecting, instance)
    more = ("--revise", "--reason", "late reports", "--store", collecting.office.store)
    revised = collecting.office.run("local", "publish", collecting.spec_file, *more)
    assert revised.code == 0, revised.err
    before = collecting.releases()
    run = ran(collecting, instance)
    assert collecting.releases() == before
    for name in CONSUMERS:
        assert str(collecting.office.published(name, revision=2)).endswith(shown(run, name)["files"])
        assert shown(run, name)["reports"] == 800


def test_a_round_never_asks_another_question_and_a_new_round_may(
    collecting: Collecting, instance: dg.DagsterInstance
) -> None:
    ran(collecting, instance, "queries", "partition")
    before = collecting.published_files()
    said_so = refused(
        collecting, instance, "queries", "partition", stop=50, consumers=[{"name": "city", "epsilon": 1, "bins": 2}]
    )
    assert "asks another question by now" in said_so and "Declare a new `round`" in said_so
    assert collecting.published_files() == before
    ran(collecting, instance, "queries", "partition", round="2026-03-02")
    assert (collecting.place / "2026-03-02" / "question.json").exists()
    assert before.items() <= collecting.published_files().items()


def checks(run: dg.ExecuteInProcessResult) -> dict[str, bool]:
    """What the one check of a run found."""
    (evaluation,) = run.get_asset_check_evaluations()
    assert evaluation.blocking and evaluation.passed == all(value.value for value in evaluation.metadata.values())
    return {label: bool(value.value) for label, value in evaluation.metadata.items()}


def test_reports_to_a_question_that_was_not_asked_are_not_published(
    collecting: Collecting, instance: dg.DagsterInstance
) -> None:
    run = materialized(collecting.defined(), instance, "reports", *CONSUMERS)
    assert not run.success and collecting.releases() == {}
    assert checks(run) == {"intervals complete": True, "question was asked": False}
    assert checks(ran(collecting, instance)) == {"intervals complete": True, "question was asked": True}


def test_reports_to_another_question_than_the_one_that_was_asked_are_not_published(
    collecting: Collecting, instance: dg.DagsterInstance
) -> None:
    ran(collecting, instance, "queries", "partition")
    collecting.answered("other", encoding="grr")
    run = materialized(collecting.defined(encoding="grr"), instance, "reports", *CONSUMERS)
    assert not run.success and collecting.releases() == {}
    assert checks(run) == {"intervals complete": True, "question was asked": False}


def test_an_interval_without_an_estimate_is_not_published(
    collecting: Collecting, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rounds.estimate_of

    def lacking(spec: Any, counted: Any, number: int) -> Any:
        estimate = real(spec, counted, number)
        estimate.values[0] = float("nan")
        return estimate

    monkeypatch.setattr(rounds, "estimate_of", lacking)
    run = materialized(collecting.defined(), instance)
    assert not run.success and collecting.releases() == {}
    assert checks(run) == {"intervals complete": False, "question was asked": True}


def truncated(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts).encode()[:-9]


def another_count(facts: dict[str, Any]) -> bytes:
    facts["ones"][0][0] += 1
    return json.dumps(facts).encode()


def no_mapping(facts: dict[str, Any]) -> bytes:
    return b"[]"


@pytest.mark.parametrize("harm", mostly_soaked([truncated, another_count, no_mapping], [1]))
def test_a_damaged_tally_is_refused_and_counted_anew(
    collecting: Collecting, instance: dg.DagsterInstance, harm: Callable[[dict[str, Any]], bytes]
) -> None:
    ran(collecting, instance, "queries", "partition", "reports")
    tally = collecting.place / "all" / "tally.json"
    whole = tally.read_bytes()
    tally.write_bytes(harm(json.loads(whole)))
    assert "is damaged. Materialize `reports` again" in refused(collecting, instance, "ages_city")
    ran(collecting, instance)
    assert tally.read_bytes() == whole


def test_a_tally_of_another_question_is_refused(collecting: Collecting, instance: dg.DagsterInstance) -> None:
    ran(collecting, instance, "queries", "partition", "reports")
    assert "is of another question" in refused(collecting, instance, "ages_city", encoding="grr")


def test_nothing_sent_is_said_with_where_it_was_looked_for(
    collecting: Collecting, instance: dg.DagsterInstance
) -> None:
    (collecting.office.folder / "reports" / "first.parquet").unlink()
    assert "no file matches `reports: reports/*.parquet`" in refused(collecting, instance)


def test_dagster_is_told_no_id_and_no_report_and_no_engines_message(
    collecting: Collecting, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pq.read_table(collecting.office.folder / "reports" / "first.parquet").to_pylist()
    run = ran(collecting, instance)
    told = "\n".join(str(entry) for entry in instance.all_logs(run.run_id))
    tally = (collecting.place / "all" / "tally.json").read_text()
    for row in rows:
        for form in (row["report_id"].hex(), repr(row["report_id"])):
            assert form not in told and form not in tally

    def fails(*_: Any) -> Any:
        raise ValueError(f"bad report {rows[0]['report_id'].hex()}")

    monkeypatch.setattr(rounds, "count_reports", fails)
    run = materialized(collecting.defined(), instance, "reports")
    assert "failed with ValueError (message withheld: it may hold parts of reports)" in said(run)
    told = "\n".join(str(entry) for entry in instance.all_logs(run.run_id))
    assert rows[0]["report_id"].hex() not in told and "ages_reports" in told
