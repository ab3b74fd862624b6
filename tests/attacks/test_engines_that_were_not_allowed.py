"""Whoever writes a spec names no server, and a server is asked only where an operator allowed it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from office import Office
from spark_servers import sail

from dphist_pipeline.confidential.engines import spark
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec._engines import NOT_SERVED
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.spec.sources import server_of

NUMBERS = {"patient": [1, 1, 1, 2], "age": [3.0, 30.0, 99.5, 120.0]}
AXES = [{"column": "age", "start": 0, "stop": 100, "width": 25}]


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Somebody's server, which answers nobody: who called it is refused, where PySpark would ask on for ten minutes."""
    connect = socket.create_connection

    def called(*arguments: Any) -> None:
        connect(*arguments).close()
        raise ConnectionRefusedError

    monkeypatch.setattr(spark.socket, "create_connection", called)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.2)
        yield listening


def asked(listening: socket.socket) -> bool:
    """Whether anybody called a server."""
    try:
        listening.accept()[0].close()
    except TimeoutError:
        return False
    return True


def counting_by_spark(office: Office, **changes: Any) -> Office:
    """An office whose spec says `engine: spark`, and where no server is allowed."""
    office.opened().write_records(NUMBERS)
    office.write_spec(engine="spark", axes=AXES, **changes)
    return office


def address_of(listening: socket.socket) -> str:
    return f"sc://127.0.0.1:{listening.getsockname()[1]}"


def test_without_a_decision_no_server_is_asked_and_nothing_spent(
    office: Office, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", address_of(listener))
    before = counting_by_spark(office).state()
    ran = office.release()
    assert ran.code == 1 and "dphist ledger allow health --spark ADDRESS" in ran.err.replace("\n", " ")
    assert not asked(listener) and office.state() == before


def test_a_server_by_another_address_than_was_allowed_is_not_asked(
    office: Office, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting_by_spark(office)
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1/;token=s3cret")
    assert office.run("ledger", "allow", "health", "--spark", "{{ env.SPARK_REMOTE }}").code == 0
    assert b"s3cret" not in (office.store / "ledger.sqlite").read_bytes()
    monkeypatch.setenv("SPARK_REMOTE", address_of(listener))
    ran = office.release()
    assert ran.code == 1 and "leads to another server than the one that was allowed" in ran.err.replace("\n", " ")
    assert not asked(listener) and len(office.entries()) == 4


def test_a_server_that_was_disallowed_is_not_asked(office: Office, listener: socket.socket) -> None:
    counting_by_spark(office)
    assert office.run("ledger", "allow", "health", "--spark", address_of(listener)).code == 0
    assert office.run("ledger", "disallow", "4", "--reason", "it was sold").code == 0
    assert office.release().code == 1 and not asked(listener)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "local[2]",
        "spark://h:7077",
        "sc://",
        "sc://a b",
        "sc://h:99999999",
        "sc://h/x",
        "sc://u:p@h",
        "sc://h:1/;token=a",
    ],
)
def test_what_is_no_address_or_holds_a_token_is_not_allowed(office: Office, written: str) -> None:
    office.opened()
    ran = office.run("ledger", "allow", "health", "--spark", written)
    assert ran.code == 1 and "Nothing was read or spent" in ran.err.replace("\n", " ")
    assert len(office.entries()) == 3


def test_servers_are_told_apart_by_host_and_port_alone() -> None:
    assert server_of("sc://Host.Example/;use_ssl=true;user_id=me") == "sc://host.example:15002"
    assert server_of("sc://[::1]:9") == "sc://[::1]:9" and server_of("session") == "session"


UNSERVED: dict[str, dict[str, Any]] = {
    "source_sql": {"source_sql": "rows.sql"},
    "source_table": {"source": "a.duckdb", "source_table": "t"},
    "hive": {"hive": True},
    "decimal_comma": {"decimal_comma": True},
    "thousands": {"thousands": ","},
    "unit_normalise": {"unit_normalise": ["trim"]},
    "period_format": {"period": "month", "period_column": "on", "period_format": "%d/%m/%Y"},
    "quality": {"quality": {"share": "1/20"}},
    "derive": {"derive": [{"column": "stay", "days_between": ["born", "died"]}]},
    "keep": {"keep": [{"column": "kind", "is": ["inpatient"]}]},
    "take": {"take": "one_per_cell"},
    "tables": {"tables": {"list": [["age"]]}, "mechanism": "tables"},
    "axes[0].format": {
        "axes": [
            {"column": "day", "calendar": "day", "start": "2020-01-01", "stop": "2020-02-01", "format": "%d/%m/%Y"}
        ]
    },
    "`source` other than": {"source": "a.csv"},
    "a `source`": {"source": "s3://bucket/a.parquet"},
    "other than Parquet": {"source": "frame:people"},
}


@pytest.mark.parametrize("field", UNSERVED)
def test_a_spec_that_engines_answer_in_different_ways_is_refused(tmp_path: Path, field: str) -> None:
    (tmp_path / "rows.sql").write_text("SELECT * FROM source")
    plain = {"release": "r", "source": "a.parquet", "privacy_unit": "person", "max_rows_per_unit": 2, "epsilon": 1}
    plain |= {"neighbours": "add_remove", "account": "health", "mechanism": "geometric", "axes": AXES}
    ReleaseSpec.from_attributes({**plain, "engine": "spark"}, tmp_path)
    ReleaseSpec.from_attributes({**plain, **UNSERVED[field]}, tmp_path)
    with pytest.raises(SpecError) as caught:
        ReleaseSpec.from_attributes({**plain, **UNSERVED[field], "engine": "spark"}, tmp_path)
    assert field in str(caught.value) and "engine: duckdb" in str(caught.value)
    assert {*NOT_SERVED} <= {*UNSERVED}


@pytest.mark.outside
def test_a_release_by_an_allowed_server_says_so_and_is_charged_once(office: Office) -> None:
    counting_by_spark(office)
    with sail() as address:
        source = ("--source", "data/admissions.parquet")
        assert office.run("ledger", "allow", "health", *source, "--spark", address).code == 0
        assert office.run("check", office.folder / "spec.yaml").code == 0
        office.released()
    audit = json.loads((office.published() / "audit.json").read_text())
    assert audit["engine"] == "spark" and [made["kind"] for made in audit["allowed"]] == ["source", "engine"]
    assert "Spark read, bounded and counted" in (office.published() / "card.html").read_text()
    shown = office.run("ledger", "show", "health").out
    assert address in shown and "0.5" in shown
    # The server is gone, and with another engine the same release replays: what is published is published.
    office.write_spec(axes=AXES)
    assert "nothing now" in office.released().out


@pytest.mark.outside
def test_what_was_charged_for_one_engine_is_not_counted_by_another(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit says which engine counted; so a run that stopped after its charge goes on with that one."""
    counting_by_spark(office)
    used: list[str] = []
    with sail() as address:
        assert office.run("ledger", "allow", "health", "--spark", address).code == 0
        write_cube = spark.write_cube
        monkeypatch.setattr(spark, "write_cube", lambda *given: used.append("spark") or write_cube(*given))
        with monkeypatch.context() as patch:
            patch.setattr("dphist_pipeline.releasing.run.Run._vouch", stopped)
            office.release()
        assert not office.published().exists() and len(office.entries()) == 5
        office.write_spec(axes=AXES)
        office.released()
    assert used == ["spark", "spark"]
    assert json.loads((office.published() / "audit.json").read_text())["engine"] == "spark"


def stopped(*given: object) -> None:
    raise KeyboardInterrupt
