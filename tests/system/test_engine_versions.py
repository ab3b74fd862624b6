"""The promise rests on the DuckDB that the suite passed with; another one reads records once an operator allowed it."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

import pytest
from office import Office

from dphist_pipeline.base import engine_versions
from dphist_pipeline.health import _versions as told
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.draws_alike


@pytest.fixture
def office(office: Office) -> Office:
    made = office.opened()
    made.allow()
    return made


def install(office: Office, patch: pytest.MonkeyPatch, name: str, version: str) -> None:
    """A package of another version comes first on the path, by what it says of itself."""
    folder = office.folder.with_name(f"site_{name}_{version}")
    (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(metadata)
    patch.syspath_prepend(str(folder))


def versions(office: Office) -> dict[str, Any]:
    found = office.run("doctor", "--json", "--store", office.store).json["checks"]
    return {check["check"]: check for check in found}["versions"]


def state(office: Office) -> tuple[int, str]:
    ledger: list[dict[str, Any]] = office.run("ledger", "show", "health", "--json", "--store", office.store).json
    return len(ledger[0]["charges"]), ledger[0]["left"]


ALLOW = ("ledger", "allow", "--engine", "duckdb=2.7")


@pytest.mark.parametrize("version", ["2.7.0", "2.7.0.dev12", "2.7.3+office", "1.4.2", "3.0.0"])
def test_another_minor_version_is_refused_before_anything_is_read(
    office: Office, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    install(office, monkeypatch, "duckdb", version)
    minor = ".".join(version.split(".")[:2])
    (office.folder / "data" / "admissions.parquet").write_bytes(b"whoever reads this fails")
    for _ in range(2):
        refused = office.release()
        said = " ".join(refused.err.split())
        assert refused.code == 1 and f"DuckDB {minor}" in said and "Nothing was read or spent" in said
        assert f"dphist ledger allow --engine duckdb={minor} --reason TEXT" in said
    assert state(office) == (0, "10")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0.0", "2.0.9", "2.0.9.dev3"])
def test_every_version_of_the_suites_minor_is_allowed(
    office: Office, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    assert engine_versions.SUITE["duckdb"] == "2.0"
    install(office, monkeypatch, "duckdb", version)
    assert versions(office)["state"] == "ok"
    office.released()


@pytest.mark.slow
def test_an_operator_allows_another_version_and_audit_card_and_reports_repeat_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(office, monkeypatch, "duckdb", "2.7.1")
    fault = versions(office)
    assert fault["state"] == "fault" and "duckdb 2.7 is not the 2.0" in fault["seen"]
    assert "dphist ledger allow --engine duckdb=2.7" in fault["mend"]
    for words, says in (
        (ALLOW, "--reason"),
        ((*ALLOW[:3], "duckdb", "--reason", "r"), "duckdb=2.1"),
        ((*ALLOW[:3], "polars=2.3", "--reason", "r"), "duckdb=2.1"),
        ((*ALLOW[:2], "health", *ALLOW[2:], "--reason", "r"), "ACCOUNT"),
    ):
        refused = office.run(*words, "--store", office.store)
        assert refused.code != 0 and says in refused.err
    made = office.run(*ALLOW, "--reason", "our own tests passed", "--store", office.store, "--json").json
    assert (made["kind"], made["name"], made["account"]) == ("version", "duckdb=2.7", "*")
    again = office.run(*ALLOW, "--reason", "our own tests passed", "--store", office.store, "--json").json
    assert again["entry"] == made["entry"]
    assert versions(office)["state"] == "ok"
    path = office.store / "public" / "wards" / "period=all" / "revision=1"
    done = office.released("--json").json
    assert done["replayed"] is False
    audit = (path / "audit.json").read_text()
    assert '"engine_version": "duckdb=2.7"' in audit and "our own tests passed" in audit
    card = re.sub(r"\s+", " ", (path / "card.html").read_text())
    assert "The promise rests on duckdb=2.7" in card
    assert "duckdb=2.7" in office.run("ledger", "show", "--store", office.store).out
    report = office.run("ledger", "report", "--store", office.store, "--json").json["general"]
    assert ("allowed an engine's version", "duckdb=2.7") in [(one["did"], one["what"]) for one in report]
    assert office.run("ledger", "verify", "--store", office.store).code == 0
    # Taken back, nothing more is read by it; what was released replays at no cost.
    back = ("ledger", "disallow", str(made["entry"]), "--reason", "a wrong number", "--store", office.store)
    assert office.run(*back).code == 0
    assert office.released("--json").json["replayed"] is True
    office.write_spec(release="more")
    assert "DuckDB 2.7" in office.release().err
    assert state(office) == (1, "19/2")


def test_another_version_is_told_where_no_ledger_can_be_opened(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    install(office, monkeypatch, "duckdb", "2.7.1")
    (office.store / "ledger.sqlite").unlink()
    told = versions(office)
    assert told["state"] == "fault" and "duckdb 2.7 is not the 2.0" in told["seen"]


@pytest.mark.slow
def test_a_rehearsal_runs_with_any_version_and_says_that_the_release_will_not(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = office.folder / "spec.yaml"
    assert "DuckDB" not in str(office.run("rehearse", spec, "--rows", "20", "--json").json["remarks"])
    install(office, monkeypatch, "duckdb", "2.7.1")
    done = office.run("rehearse", spec, "--rows", "20", "--json")
    assert done.code == 0, done.err
    assert any("duckdb=2.7" in remark and "ledger allow" in remark for remark in done.json["remarks"])


@pytest.mark.slow
def test_what_was_charged_by_one_version_is_not_read_by_another_without_a_decision(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dphist_pipeline.mechanisms.geometric import Geometric

    with monkeypatch.context() as broken:
        broken.setattr(Geometric, "release", lambda *given: 1 // 0)
        assert office.release().code == 1
    assert state(office) == (1, "19/2")
    install(office, monkeypatch, "duckdb", "2.7.1")
    refused = office.release()
    assert refused.code == 1 and "DuckDB 2.7" in refused.err
    assert office.run(*ALLOW, "--reason", "our own tests passed", "--store", office.store).code == 0
    office.released()
    assert state(office) == (1, "19/2")


def test_a_bound_above_hides_no_bound_below_from_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    written = ["duckdb<2.1,>=2.0", "polars>=2.1", "pyarrow>=26,<27", "obstore>=0.12; extra == 'bucket'"]
    monkeypatch.setattr(metadata, "requires", lambda package: written)
    assert told._needed_versions() == [("duckdb", "2.0"), ("polars", "2.1"), ("pyarrow", "26")]


@pytest.mark.slow
def test_another_version_of_pyarrow_is_told_and_releases(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    install(office, monkeypatch, "pyarrow", "27.1.0")
    found = versions(office)
    assert found["state"] == "warning" and "pyarrow 27.1 is not the" in found["seen"]
    assert "constraints.txt" in found["mend"]
    office.released()


def test_another_polars_or_none_is_refused_before_anything_is_read(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(office, monkeypatch, "polars", "2.9.0")
    fault = versions(office)
    assert fault["state"] == "fault" and "polars 2.9 is not the 2.1" in fault["seen"]
    assert "constraints.txt" in fault["mend"] and "ledger allow" not in fault["mend"]
    (office.folder / "data" / "admissions.parquet").write_bytes(b"whoever reads this fails")
    refused = office.release()
    assert refused.code == 1 and "Polars of this installation (2.9)" in " ".join(refused.err.split())
    minor = engine_versions.installed_minor
    monkeypatch.setattr(engine_versions, "installed_minor", lambda name: "" if name == "polars" else minor(name))
    refused = office.release()
    assert refused.code == 1 and "Polars of this installation (missing)" in " ".join(refused.err.split())
    assert state(office) == (0, "10")


@pytest.mark.slow
def test_a_decision_about_polars_is_read_where_a_later_version_made_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(office, monkeypatch, "polars", "2.9.0")
    store = Store.open(office.store)
    store.ledger().allow(EVERYWHERE, {"version": {"name": "polars=2.9"}}, Operator.load(), "our own tests passed")
    office.released()
    audit = office.store / "public" / "wards" / "period=all" / "revision=1" / "audit.json"
    assert '"engine_version": "polars=2.9"' in audit.read_text()
