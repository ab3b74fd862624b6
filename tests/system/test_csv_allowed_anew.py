"""How a CSV is read has changed: digests keep their form, and an operator allows each CSV source anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from office import SPEC, WARD, Office

from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.sources import RecordSource

pytestmark = [
    pytest.mark.draws_alike,
    pytest.mark.stand_in("catalogue", "pictures", why="what is allowed, not how it looks"),
]

CSV: dict[str, Any] = {"source": "data/a.csv", "max_rows_per_unit": 1, "epsilon": "5", "axes": [WARD]}
AS_BEFORE = ("ledger", "allow", "health", "--source", "data/a.csv", "--csv-quote", "none")
QUOTED = "".join(f'surgery,"fracture, part {part}",p1\n' for part in range(100))


@contextmanager
def before_0_3(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Decisions and charges as the version before made them: no entry states how lines are read."""
    with patch.context() as earlier:
        reading = RecordSource.reading.fget
        assert reading is not None
        earlier.setattr(RecordSource, "reading", property(lambda records: replace(reading(records), lines=False)))
        yield


def csv_office(office: Office, content: str = "ward,patient\nsurgery,ann\n", **changes: Any) -> Office:
    office.opened()
    Path("data").mkdir(exist_ok=True)
    Path("data/a.csv").write_text(content)
    office.write_attributes_alone(**{**CSV, **changes})
    return office


def digest(source: str, **changes: Any) -> str:
    return ReleaseSpec.from_attributes({**SPEC, "source": source, **changes}, Path.cwd()).digest


@pytest.mark.parametrize("source", ["data/*.parquet", "frame:visits", "data/a.duckdb", "s3://bucket/b/*.parquet"])
def test_a_spec_without_csv_has_the_digest_that_it_had(source: str) -> None:
    changes = {"source_table": "t"} if "duckdb" in source else {}
    spec = ReleaseSpec.from_attributes({**SPEC, "source": source, **changes}, Path.cwd())
    assert spec.digest_facts["csv_quote"] == spec.reading.csv_quote == ""
    assert "lines" not in spec.reading.facts()
    assert digest(source, csv_quote='"', **changes) != spec.digest == digest(source, csv_quote="", **changes)


def test_quotes_of_csv_stand_in_digests_in_their_old_form() -> None:
    by_word = {word: digest("data/a.csv", csv_quote=word) for word in ("rfc", "none", "all", "", '"', "'")}
    assert digest("data/a.csv") == by_word["rfc"] == by_word['"']
    assert by_word["none"] == by_word[""]
    assert len(set(by_word.values())) == 4
    spec = ReleaseSpec.from_attributes({**SPEC, "source": "data/a.csv", "csv_quote": "none"}, Path.cwd())
    assert spec.digest_facts["csv_quote"] == "" and spec.reading.facts()["lines"] is True


def test_one_person_with_a_hundred_quoted_lines_is_one_person(office: Office) -> None:
    csv_office(office, f"ward,diagnosis,patient\n{QUOTED}", epsilon="10")
    assert office.run("ledger", "allow", "health", "--source", "data/a.csv").code == 0
    office.released()
    answer = office.run("answer", "wards", "--where", "ward = 'surgery'", "--json").json
    assert abs(answer["estimate"] - 1) < 5


def test_a_new_charge_asks_for_a_new_decision_before_anything_is_read(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv_office(office)
    with before_0_3(monkeypatch):
        assert office.run(*AS_BEFORE).code == 0
    Path("data/a.csv").unlink()  # what is not there was not looked for
    refused = office.release()
    assert refused.code == 1 and "No such file" not in refused.err
    words = " ".join(refused.err.split())
    assert all(word in words for word in ("before 0.3.0", "rfc", "`all`", "`none`", "Text of several lines"))
    assert "dphist ledger allow health --source data/a.csv" in words and "Nothing was read or spent" in words


def test_a_replay_by_an_old_decision_is_free(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    csv_office(office, csv_quote="")
    with before_0_3(monkeypatch):
        assert office.run(*AS_BEFORE).code == 0
        office.released()
    entries = office.entries()
    Path("data/a.csv").unlink()
    assert office.released() and office.entries() == entries
    # Left out, it is now another spec than was charged; the message says how to write that one.
    office.write_attributes_alone(**CSV)
    assert "write `csv_quote: none`" in " ".join(office.release().err.split())


def test_a_charged_run_of_before_is_finished_after_a_new_decision(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv_office(office, csv_quote="none")
    with before_0_3(monkeypatch), monkeypatch.context() as killing:
        assert office.run(*AS_BEFORE).code == 0
        killing.setattr(Geometric, "release", lambda *given: 1 // 0)
        assert office.release().code == 1
    charges = len(office.entries())
    refused = office.release()
    assert refused.code == 1 and "dphist ledger allow health" in refused.err
    assert len(office.entries()) == charges
    assert office.run(*AS_BEFORE).code == 0
    office.released()
    with office.witnessed():
        ledger = Store.open(office.store).ledger()
        (charge,) = ledger.charges("wards", "all")
        assert ledger.published_digest(charge) is not None
        assert [decision.reading and decision.reading.lines for decision in ledger.decisions("health")][-2:] == [
            False,
            True,
        ]


def test_check_and_look_say_what_becomes_of_lines(office: Office) -> None:
    csv_office(office)
    told = office.run("check", "spec.yaml", "--json").json["lines_read"]
    assert "dphist look" in told and "cut into" in told and "not a person" not in told
    office.write_attributes_alone(**{**CSV, "privacy_unit": "row", "csv_quote": "all"})
    told = office.run("check", "spec.yaml", "--json").json["lines_read"]
    assert "a line, not a person" in told and "cut into" not in told
