"""Backups that are put back: each row of the table on the page about deploying, with a ledger apart from its store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from office import Office
from system.doctored import examined

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="ledgers that are put back")

WEEKS = ("2026-01-05", "2026-01-12", "2026-01-19")
WEEKLY = {"period": "week", "period_column": "day", "period_format": "iso"}


class Kept:
    """An office whose ledger lies apart from its store; copies of any of the three."""

    def __init__(self, office: Office, patch: pytest.MonkeyPatch) -> None:
        self.office = office
        (office.folder / "books").mkdir()
        patch.setenv("DPHIST_LEDGER", f"sqlite:///{office.folder}/books/ledger.sqlite")
        self.places = {"store": office.store, "ledger": office.folder / "books", "witness": office.witness}
        office.opened().write_records(
            {"patient": ["a", "b", "c"], "age": [1.0] * 3, "ward": ["surgery"] * 3, "day": WEEKS}
        )
        office.write_spec(**WEEKLY, release_delay_days=0)
        office.allow()

    def copy(self, name: str, source: Path, target: Path) -> None:
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)

    def back_up(self) -> None:
        for name, place in self.places.items():
            self.copy(name, place, self.office.folder.with_name(f"monday_{name}"))

    def lose(self, *names: str) -> None:
        for name in names:
            place = self.places[name]
            shutil.rmtree(place) if place.is_dir() else place.unlink()

    def restore(self, *names: str) -> None:
        self.lose(*names)
        for name in names:
            self.copy(name, self.office.folder.with_name(f"monday_{name}"), self.places[name])

    def state(self, check: str) -> str:
        return examined(self.office)[check]["state"]


@pytest.fixture
def kept(office: Office, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """One week is out, all is copied, and the next week follows."""
    made = Kept(office, monkeypatch)
    office.released("--period", WEEKS[0])
    made.back_up()
    office.released("--period", WEEKS[1])
    return made


@pytest.mark.slow
def test_an_older_store_goes_on_with_the_ledger_that_was_not_lost(kept: Kept) -> None:
    kept.restore("store")
    office = kept.office
    office.released("--period", WEEKS[2])
    refused = office.release("--period", WEEKS[1])
    assert refused.code == 1 and "--revise" in refused.err
    office.released("--period", WEEKS[1], "--revise", "--reason", "lost with the disk")
    assert office.run("ledger", "verify").code == 0


@pytest.mark.parametrize("lost", [("ledger",), ("store", "ledger")])
def test_an_older_ledger_is_refused_until_an_operator_adopts_it(kept: Kept, lost: tuple[str, ...]) -> None:
    kept.restore(*lost)
    office = kept.office
    found = examined(office)
    assert "fault" in (found["ledger"]["state"], found["witness"]["state"])
    for week in WEEKS[1:]:
        refused = office.release("--period", week)
        assert refused.code == 1 and "dphist store adopt" in refused.err
    adopted = office.run("store", "adopt", "--reason", "the disk failed", "--json")
    assert adopted.code == 0 and adopted.json["carried"] == [f"wards, period {WEEKS[1]}, revision 1"], adopted.err
    assert kept.state("ledger") == "ok" and kept.state("witness") == "warning"
    office.released("--period", WEEKS[2])
    assert office.run("ledger", "show", "health", "--json").json[0]["spent"] == "3/2"


@pytest.mark.slow
def test_an_older_witness_learns_later_charges_from_the_ledger(kept: Kept) -> None:
    kept.restore("witness")
    kept.office.released("--period", WEEKS[2])
    shutil.copy(kept.office.folder.with_name("monday_ledger") / "ledger.sqlite", kept.places["ledger"])
    shutil.rmtree(kept.office.store / "public" / "wards")
    assert kept.state("witness") == "fault", "it knows again what the older ledger lacks"


@pytest.mark.slow
def test_a_store_without_any_witness_needs_a_word_about_what_was_spent(kept: Kept) -> None:
    kept.lose("witness")
    office = kept.office
    assert kept.state("witness") == "fault" and office.release("--period", WEEKS[2]).code == 1
    refused = office.run("store", "adopt", "--reason", "lost")
    assert refused.code == 1 and "--spent-elsewhere health=EPSILON" in refused.err
    assert office.run("store", "adopt", "--reason", "lost", "--spent-elsewhere", "health=0").code == 0
    office.released("--period", WEEKS[2])


@pytest.mark.slow
def test_of_ledger_and_witness_of_one_night_only_what_was_published_tells(kept: Kept) -> None:
    kept.restore("ledger", "witness")
    assert kept.state("ledger") == "fault", "an audit in the public folder names an entry that is missing"
    kept.restore("store")
    assert kept.state("ledger") == "ok" and kept.state("witness") == "warning", "nothing is left that could tell"
    stated = ("--spent-elsewhere", "health=1/2")
    assert kept.office.run("store", "adopt", "--reason", "lost", *stated).code == 0
    kept.office.released("--period", WEEKS[2])
    assert kept.office.run("ledger", "show", "health", "--json").json[0]["spent"] == "3/2"
