"""Errors say whether the same call may be tried again, and whether anything was charged; such calls are tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from error_codes import ledger_refuses
from office import Office
from system.orchestrated import charges, defined, materialized, said

from dphist_pipeline.errors import DphistError
from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.ledger import postgresql
from dphist_pipeline.ledger.errors import LedgerBusy, LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing.bucket_sync import NotSent
from dphist_pipeline.releasing import publisher
from dphist_pipeline.releasing.public_folder import NotCopied
from dphist_pipeline.releasing.run import Run

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="what errors say")

LOST = LedgerBusy(
    "connection_lost", noun="ledger", where="postgresql://db/ledger", problem="the connection was refused or lost"
)
CLOSED = "postgresql://nobody@127.0.0.1:1/ledger"


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "WAITS", (0, 0, 0))


def failing(times: int, error: DphistError, real: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails so many times before it does what it did."""
    left = [error] * times

    def instead(*given: Any, **more: Any) -> Any:
        if left:
            raise left.pop()
        return real(*given, **more)

    return instead


def test_a_lost_connection_exits_with_75_and_says_that_nothing_was_charged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.opened()
    monkeypatch.setattr(Ledger, "check", failing(1, LOST, Ledger.check))
    ran = office.release("--json")
    assert ran.code == 75
    error = ran.json["error"]
    assert (error["code"], error["try_again"], error["charged"]) == ("connection_lost", True, False)
    assert error["message"].endswith("Nothing was charged. The same call may be tried again.")
    assert error["message"] in " ".join(ran.err.split()) and charges(office) == 0
    assert office.released("--json").json["replayed"] is False


def test_an_error_after_the_charge_says_that_the_period_is_charged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.opened()
    monkeypatch.setattr(publisher, "publish", failing(1, LOST, publisher.publish))
    error = office.release("--json").json["error"]
    assert error["charged"] is True and "this call never charges it again" in error["message"]
    office.released()
    assert charges(office) == 1


def test_a_revision_that_fails_before_its_charge_is_not_told_as_charged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.opened().released()
    monkeypatch.setattr(Run, "count", failing(1, LOST, Run.count))
    error = office.release("--revise", "--reason", "late records", "--json").json["error"]
    assert error["charged"] is False and charges(office) == 1


def test_a_connection_that_is_lost_while_charging_leaves_open_what_was_charged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.opened()
    monkeypatch.setattr(Ledger, "charge", failing(1, LOST, Ledger.charge))
    monkeypatch.setattr(Ledger, "charges", failing(2, LOST, Ledger.charges))
    monkeypatch.setattr(Run, "begin", failing(0, LOST, Run.begin))
    real = Ledger.charges
    asked: list[int] = []

    def first_only(ledger: Ledger, release: str, period: str) -> Any:
        asked.append(1)
        if len(asked) > 1:
            raise LOST
        return []

    monkeypatch.setattr(Ledger, "charges", first_only)
    assert office.release("--json").json["error"]["charged"] is None
    monkeypatch.setattr(Ledger, "charges", real)


def test_a_refusal_exits_with_1_and_has_a_code(office: Office) -> None:
    office.opened().write_spec(epsilon="20")
    ran = office.release("--json")
    assert ran.code == 1
    error = ran.json["error"]
    assert (error["code"], error["try_again"], error["charged"]) == ("overspend", False, False)
    wrong = office.run("release", office.folder / "spec.yaml", "--json", "--nonsense")
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "usage")


@pytest.mark.slow
def test_a_step_tries_a_lost_connection_again_and_a_refusal_never(
    office: Office, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = defined(office.opened())
    for error, tries in ((LOST, 4), (DphistError("it is refused"), 1)):
        asked: list[int] = []
        with monkeypatch.context() as broken:
            broken.setattr(Run, "begin", lambda *given, e=error, a=asked: a.append(1) or _raise(e))
            run = materialized(definitions, instance)
        assert not run.success and len(asked) == tries
        record = instance.get_run_by_id(run.run_id)
        assert record is not None and record.tags["dagster/max_retries"] == "0"
    assert "Nothing was charged." in said(run)
    monkeypatch.setattr(Run, "draw", failing(3, LOST, Run.draw))
    assert materialized(definitions, instance).success and charges(office) == 1


def test_a_refusal_is_final_though_a_project_tries_every_step_again(
    office: Office, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = dg.define_asset_job("theirs", op_retry_policy=dg.RetryPolicy(max_retries=2))
    definitions = dg.Definitions.merge(defined(office.opened()), dg.Definitions(jobs=[theirs]))
    asked: list[int] = []
    monkeypatch.setattr(Run, "begin", lambda *given: asked.append(1) or _raise(DphistError("it is refused")))
    run = definitions.resolve_job_def("theirs").execute_in_process(instance=instance, raise_on_error=False)
    assert not run.success and len(asked) == 1


def _raise(error: DphistError) -> None:
    raise error


@pytest.mark.slow
def test_a_failed_copy_is_a_failed_check_of_a_release_that_is_there(
    office: Office, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = defined(office.opened())
    real = Run.refresh_catalogue
    monkeypatch.setattr(Run, "refresh_catalogue", failing(1, NotCopied("the bucket is full.", False), real))
    run = materialized(definitions, instance)
    found = {one.check_name: one for one in run.get_asset_check_evaluations()}
    assert run.success and not found["copied"].passed and found["account_lasts"].passed
    assert "the bucket is full" in str(found["copied"].description)
    assert found["copied"].severity == dg.AssetCheckSeverity.ERROR
    again = {one.check_name: one for one in materialized(definitions, instance).get_asset_check_evaluations()}
    assert again["copied"].passed and charges(office) == 1


def test_only_what_passes_by_itself_may_be_tried_again() -> None:
    assert LedgerBusy("file_busy", noun="ledger", where="x", seconds=60).try_again and LOST.try_again
    assert not LedgerError("file_unusable", noun="ledger", where="x", problem="it is read-only").try_again
    assert not NotSent("s3://b", "cannot be written").try_again


def test_a_server_that_does_not_answer_may_be_tried_again_and_one_that_refuses_not() -> None:
    pytest.importorskip("psycopg")
    with ledger_refuses("connection_lost"):
        Ledger.open(CLOSED)
    there = postgresql.PostgresDatabase.at(CLOSED)
    for said_by_server, again in (
        ('connection failed: FATAL:  password authentication failed for user "x"', False),
        ("connection failed: FATAL:  the database system is starting up", True),
        ("connection failed: FATAL:  sorry, too many clients already", True),
        ("server closed the connection unexpectedly", True),
    ):
        assert there._ledger_error(OSError(said_by_server)).try_again is again
