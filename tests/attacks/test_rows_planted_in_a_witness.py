"""Rows that whoever may charge plants in a witness: nothing is drawn twice, and each refusal names a way out.

The witness lies in a file, where anybody who can write it can plant anything, or on a server, where the user who may
only charge plants what the server takes.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from database_server import Server
from office import Office, Ran
from unit.witness_scenario import hashed

from dphist_pipeline.cli.operate.ledger_server import role_statements
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.releasing.run import Run
from dphist_pipeline.releasing.store import Store

pytestmark = [
    pytest.mark.stand_in("catalogue", "pictures", why="rows of a witness, and what they stop"),
    pytest.mark.slow,
]

ADOPT = ("store", "adopt", "--reason", "planted, by who may charge")
STEPS = {"mechanism": "dawa", "axes": [{"column": "age", "start": 0, "stop": 100, "width": 25}]}
Plant = Callable[["Planted"], None]


@dataclass
class Planted:
    """An office, and hands that write to its witness."""

    office: Office
    server: Server | None = None
    database: str = ""

    def insert(self, table: str, **row: object) -> None:
        """Plants a row; on a server as the user who may charge."""
        names = ", ".join(f'"{name}"' for name in row)
        values = ", ".join(str(value) if isinstance(value, int) else f"'{value}'" for value in row.values())
        statement = f"INSERT INTO {table} ({names}) VALUES ({values})"
        if self.server is not None:
            self.server.psql(self.database, statement, user="planting")
            return
        with closing(sqlite3.connect(self.office.witness, isolation_level=None)) as connection:
            connection.execute(statement)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        with self.office.witnessed():
            witness = Witness.at()
        with witness._file.session("read") as connection:
            return [tuple(row) for row in connection.execute(sa.select(sa.text("*")).select_from(sa.text(table)))]

    @property
    def store(self) -> str:
        return Store.open(self.office.store).id

    @property
    def generation(self) -> int:
        return max(int(row[1]) for row in self.rows("generation"))

    def charge(self, **changes: object) -> None:
        """A made-up charge, at the next position."""
        position = 1 + len([row for row in self.rows("charge") if row[1] == self.generation])
        row = {"store": self.store, "generation": self.generation, "position": position, "number": 900}
        row |= {"hash": hashed(f"made up {position}"), "account": "health", "release": "invented", "period": "all"}
        self.insert("charge", **{**row, "revision": 1, "epsilon": "3/1", "year": 2026, **changes})

    def spent(self) -> Fraction:
        (told,) = self.office.run("ledger", "show", "health", "--json").json
        return Fraction(told["spent"])

    def total(self) -> Fraction:
        (told,) = self.office.run("ledger", "show", "health", "--json").json
        return Fraction(told["total"])

    def answers(self) -> list[Path]:
        return sorted((self.office.store / "confidential" / "journal").rglob("*.answer"))

    def last_charge(self) -> tuple[Any, ...]:
        return next(row for row in reversed(self.office.entries()) if row[1] == "charged")


@pytest.fixture(params=["file", pytest.param("on_server", marks=pytest.mark.outside)])
def planted(request: pytest.FixtureRequest, office: Office) -> Planted:
    if request.param == "file":
        return Planted(office.opened())
    server: Server = request.getfixturevalue("database_server")
    address = server.new_database()
    name = str(sa.make_url(address).database)
    office.witness = address  # type: ignore[assignment]  # the environment takes both
    office.of_its_own()
    office.write_records()
    office.write_spec()
    for role in ("planting", "deciding"):
        server.psql(
            "postgres",
            f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        )
    server.psql(name, role_statements("planting", "deciding", witness=True))
    return Planted(office, server, name)


def head(planted: Planted) -> None:
    planted.insert("head", store=planted.store, generation=planted.generation, number=10**9, hash=hashed("no entry"))


def made_up_charge(planted: Planted) -> None:
    planted.charge()


def place(planted: Planted) -> None:
    for _ in range(2):
        ids = planted.rows("place")
        folder = ids[0][0] if ids else planted.store
        number = 1 + max([row[1] for row in ids if row[0] == folder], default=0)
        planted.insert("place", store=folder, number=number, place="elsewhere")


def told(ran: Ran) -> str:
    return " ".join(ran.err.split())


def commands(ran: Ran) -> list[str]:
    return re.findall(r"dphist ledger raise \S+ --total \S+ --reason TEXT", " ".join(ran.out.split()))


def refused_with_the_way_out(ran: Ran) -> None:
    text = told(ran)
    assert ran.code == 1, text
    assert "put back from a backup, or is this a copy?" in text and "never less" in text
    assert text.index("put back from a backup") < text.index("dphist store adopt --reason TEXT")
    assert "dphist ledger raise" in text and "knows that nothing was drawn" in text


def way_out(planted: Planted, carried: Fraction) -> None:
    """Does what the message says: adopts, which counts as spent, then gives back what was never drawn."""
    office, before, total = planted.office, planted.spent(), planted.total()
    adopted = office.run(*ADOPT)
    assert adopted.code == 0, adopted.err
    assert planted.spent() == before + carried
    given_back = commands(adopted)
    assert len(given_back) == (1 if carried else 0)
    for command in given_back:
        done = office.run(*command.removeprefix("dphist ").replace("TEXT", "nothing was drawn").split()[:-3])
        done = done if done.code == 0 else office.run(*command.removeprefix("dphist ").split())
        assert done.code == 0, done.err
    assert planted.total() == total + carried


DENIED: dict[str, tuple[Plant, Fraction]] = {
    "charge": (made_up_charge, Fraction(3)),
    "head": (head, Fraction(0)),
    "charge of no account": (lambda planted: planted.charge(account="nobody"), Fraction(0)),
}


@pytest.mark.parametrize("row", DENIED)
def test_a_row_before_a_charge_stops_it_at_no_cost_until_the_store_is_adopted(planted: Planted, row: str) -> None:
    plant, carried = DENIED[row]
    office = planted.office
    office.released()
    plant(planted)
    office.write_spec(release="others")
    for _ in range(2):
        refused_with_the_way_out(office.release())
        assert planted.spent() == Fraction(1, 2)
    way_out(planted, carried)
    office.released()
    assert planted.spent() == 1 + carried


@pytest.mark.parametrize("row", DENIED)
def test_a_row_after_a_charge_stops_it_before_it_is_drawn(planted: Planted, row: str) -> None:
    plant, carried = DENIED[row]
    office, vouch = planted.office, Run._vouch

    def planting(*given: Any) -> None:
        plant(planted)
        vouch(*given)

    with patch.object(Run, "_vouch", planting):
        refused_with_the_way_out(office.release())
    for _ in range(2):
        refused_with_the_way_out(office.release())
        assert planted.answers() == [] and planted.spent() == Fraction(1, 2)
    way_out(planted, carried)
    lost = office.release()
    assert lost.code == 1 and "dphist release with --revise --reason TEXT" in told(lost)
    office.released("--revise", "--reason", "was never drawn")
    assert planted.spent() == 1 + carried


def between_answers(planted: Planted, plant: Plant) -> Ran:
    """A release of two steps, with a row planted after the first one's answer."""
    planted.office.write_spec(**STEPS)
    whole = Witness.vouch_answer
    with patch.object(Witness, "vouch_answer", autospec=True) as vouching:

        def first_only(*given: Any) -> None:
            whole(*given)
            vouching.side_effect = whole
            plant(planted)

        vouching.side_effect = first_only
        return planted.office.release()


@pytest.mark.parametrize("row", DENIED)
def test_a_row_between_two_answers_stops_the_next_release(planted: Planted, row: str) -> None:
    plant, carried = DENIED[row]
    ran = between_answers(planted, plant)
    assert ran.code == 0 and len(planted.answers()) > 1, ran.err
    planted.office.write_spec(release="others")
    refused_with_the_way_out(planted.office.release())
    way_out(planted, carried)
    planted.office.released()


def test_an_answer_that_nobody_drew_stops_the_draw_before_it_is_made(planted: Planted) -> None:
    office, vouch = planted.office, Run._vouch

    def planting(*given: Any) -> None:
        vouch(*given)
        planted.insert(
            "answer", store=planted.store, charge=planted.last_charge()[-1], step="counts", digest=hashed("no answer")
        )

    with patch.object(Run, "_vouch", planting), patch.object(Journal, "_link", side_effect=AssertionError("drawn")):
        refused = office.release()
    for ran in (refused, office.release(), office.release()):
        text = told(ran)
        assert ran.code == 1 and "has drawn the answer to 'counts' already" in text and "entered that by hand" in text
        assert "the same call costs nothing more" in text
        assert "dphist ledger raise health --total TOTAL --reason TEXT" in text
        assert planted.answers() == [] and planted.spent() == Fraction(1, 2)
    office.released("--revise", "--reason", "was never drawn")
    given_back = office.run("ledger", "raise", "health", "--total", "10.5", "--reason", "was never drawn")
    assert given_back.code == 0 and planted.spent() == 1


def test_an_answer_between_two_answers_stops_the_second_draw(planted: Planted) -> None:
    whole = Witness.drawn_elsewhere

    def planting(witness: Witness, store: str, charge: str, step: str) -> Any:
        if planted.answers():  # the first one is there
            planted.insert("answer", store=store, charge=charge, step=step, digest=hashed(step))
        return whole(witness, store, charge, step)

    planted.office.write_spec(**STEPS)
    with patch.object(Witness, "drawn_elsewhere", planting):
        ran = planted.office.release()
    before = planted.answers()
    assert ran.code == 1 and "entered that by hand" in told(ran) and len(before) == 1
    again = planted.office.release()
    assert again.code == 1 and planted.answers() == before and planted.spent() == Fraction(1, 2)
    planted.office.released("--revise", "--reason", "was never drawn")


@pytest.mark.parametrize("moment", ["before", "after", "between"])
def test_a_place_stops_nothing(planted: Planted, moment: str) -> None:
    office = planted.office
    if moment == "between":
        assert between_answers(planted, place).code == 0
    elif moment == "before":
        place(planted)
        office.released()
    else:
        vouch = Run._vouch

        def planting(*given: Any) -> None:
            place(planted)
            vouch(*given)

        with patch.object(Run, "_vouch", planting):
            office.released()
    office.write_spec(release="others")
    office.released()


@pytest.mark.parametrize("row", [*DENIED, "place", "nothing"])
def test_a_restored_store_is_refused_before_a_row_and_after_it(planted: Planted, row: str) -> None:
    office = planted.office
    backup = shutil.copytree(office.store, office.folder.with_name("backup"))
    office.released()
    shutil.rmtree(office.store)
    shutil.copytree(backup, office.store)
    refused_with_the_way_out(office.release())
    plant, carried = {**DENIED, "place": (place, Fraction(0)), "nothing": (lambda _: None, Fraction(0))}[row]
    plant(planted)
    refused_with_the_way_out(office.release())
    assert planted.answers() == []
    way_out(planted, carried + Fraction(1, 2))
    lost = office.release()
    assert lost.code == 1 and "was charged before this store was adopted" in told(lost)
    office.released("--revise", "--reason", "lost with the disk")


def test_a_real_charges_hash_beside_another_price_lets_nothing_be_spent_again(planted: Planted) -> None:
    office, vouch = planted.office, Run._vouch
    backup = shutil.copytree(office.store, office.folder.with_name("backup"))

    def planting(*given: Any) -> None:
        number, _, account, release, period, revision, *_, made_at, of = planted.last_charge()
        same = {"number": number, "hash": of, "account": account, "release": release, "period": period}
        planted.charge(**same, revision=revision, year=int(made_at[:4]), epsilon="1/1000000")
        vouch(*given)

    with patch.object(Run, "_vouch", planting):
        refused_with_the_way_out(office.release())
    assert planted.answers() == [], "what the witness holds at another price is not drawn"
    shutil.rmtree(office.store)
    shutil.copytree(backup, office.store)
    refused_with_the_way_out(office.release())
    assert planted.answers() == []


def test_a_carried_charges_hash_does_not_serve_as_the_ledgers_head(planted: Planted) -> None:
    office = planted.office
    planted.charge()
    assert office.run(*ADOPT).code == 0
    planted.insert("head", store=planted.store, generation=planted.generation, number=10**9, hash=hashed("made up 1"))
    refused_with_the_way_out(office.release())
    way_out(planted, Fraction(0))
    office.released()


# What a server refuses, and what a file holds nevertheless


def malformed(planted: Planted) -> list[tuple[str, dict[str, object]]]:
    known = {"store": planted.store, "generation": planted.generation}
    of = {**known, "position": 2, "number": 9, "hash": hashed("new"), "account": "health", "release": "wards"}
    of |= {"period": "all", "revision": 2, "epsilon": "1/2", "year": 2026}
    bad: dict[str, list[object]] = {
        "store": ["another"],
        "generation": [0, 2],
        "position": [1, 3, 2**31 - 1],
        "number": [0, -1, 10**9 + 1],
        "hash": ["", "x", hashed("new").upper(), hashed("new") + "0", planted.last_charge()[-1]],
        "account": ["", "Health", "a\nb"],
        "release": ["", "../up", "a\u202eb"],
        "period": ["", "2026", "all\n"],
        "revision": [0, 1, 3, 10**6 + 1],
        "epsilon": ["x", "", "0.5", "2/4", "0/1", "1/2000000", "51/1", "-1/2", f"{10**39}1/{10**39}"],
        "year": [0, 99999],
    }
    rows = [("charge", {**of, name: value}) for name, values in bad.items() for value in values]
    latest = max(row[2] for row in planted.rows("head"))
    rows += [("head", {**known, "number": number, "hash": hashed("h")}) for number in (latest, 0, 10**9 + 1)]
    rows += [
        ("head", {**known, "number": 10**9, "hash": "x"}),
        ("head", {**known, "generation": 2, "number": 10**9, "hash": hashed("h")}),
    ]
    answer = {"store": planted.store, "charge": planted.last_charge()[-1], "step": "more", "digest": hashed("a")}
    rows += [
        ("answer", {**answer, **change})
        for change in ({"charge": hashed("x")}, {"digest": "x"}, {"step": ""}, {"store": "b"})
    ]
    (folder, number, _) = planted.rows("place")[0]
    rows += [("place", {"store": folder, "number": at, "place": "p"}) for at in (number, number + 2, 2**31 - 1)]
    return [
        *rows,
        ("place", {"store": "nobody's", "number": 1, "place": "p"}),
        ("generation", {**known, "generation": 2, "started_by": "x"}),
    ]


@pytest.mark.outside
@pytest.mark.parametrize("planted", ["on_server"], indirect=True)
def test_a_server_refuses_every_row_that_the_program_would_not_write(planted: Planted) -> None:
    planted.office.released()
    before = {table: planted.rows(table) for table in ("charge", "answer", "head", "place", "generation")}
    for table, row in malformed(planted):
        with pytest.raises(subprocess.CalledProcessError):
            planted.insert(table, **row)
    assert {table: planted.rows(table) for table in before} == before
    planted.office.write_spec(release="others")
    planted.office.released()


@pytest.mark.outside
@pytest.mark.parametrize("planted", ["on_server"], indirect=True)
def test_a_witness_of_an_earlier_version_goes_on_and_its_owner_upgrades_it(planted: Planted) -> None:
    office, server = planted.office, planted.server
    assert server is not None
    for table in ("charge", "answer", "head", "place"):
        server.psql(planted.database, f"DROP TRIGGER always_next ON {table}", f"DROP FUNCTION {table}_always_next()")
    office.released()
    found = {one["check"]: one for one in office.run("doctor", "--json").json["checks"]}
    assert "dphist ledger upgrade --witness" in found["witness_access"]["mend"], found["witness_access"]
    assert office.run("ledger", "upgrade", "--witness").code == 0
    assert "already" in office.run("ledger", "upgrade", "--witness").out
    for table, row in malformed(planted):
        with pytest.raises(subprocess.CalledProcessError):
            planted.insert(table, **row)
    office.write_spec(release="others")
    office.released()


BROKEN: dict[str, Plant] = {
    "a price": lambda planted: planted.charge(epsilon="x"),
    "a number": lambda planted: planted.charge(number="nine"),
    "a year": lambda planted: planted.charge(year=1),
    "a name": lambda planted: planted.charge(release="\x1b[2J"),
    "an account": lambda planted: planted.charge(account="health; more"),
}


@pytest.mark.parametrize("planted", ["file"], indirect=True)
@pytest.mark.parametrize("what", BROKEN)
def test_a_file_with_a_row_that_is_no_charge_is_left_for_a_new_one(planted: Planted, what: str, tmp_path: Path) -> None:
    office = planted.office
    office.released()
    BROKEN[what](planted)
    office.write_spec(release="others")
    for ran in (office.release(), office.run(*ADOPT)):
        assert ran.code == 1 and "set DPHIST_WITNESS to a new file" in told(ran)
    office.witness = tmp_path / "new.sqlite"
    stated = office.run(*ADOPT)
    assert stated.code == 1 and "--spent-elsewhere health=EPSILON" in told(stated)
    assert office.run(*ADOPT, "--spent-elsewhere", "health=0").code == 0
    office.released()


@pytest.mark.parametrize("planted", ["file"], indirect=True)
@pytest.mark.parametrize("number", [2**31 - 1, 2**63 - 1, "last"])
def test_numbers_without_a_next_one_in_a_file_stop_nothing_for_good(planted: Planted, number: int | str) -> None:
    office = planted.office
    office.released()
    (folder, *_), *_ = planted.rows("place")
    planted.insert("place", store=folder, number=number, place="elsewhere")
    office.write_spec(release="others")
    office.released()
    planted.insert("head", store=planted.store, generation=1, number=number, hash=hashed("h"))
    office.write_spec(release="more")
    refused_with_the_way_out(office.release())
    way_out(planted, Fraction(0))
    office.released()


# Two signatures


def key_file(place: Path) -> Path:
    private = Ed25519PrivateKey.generate()
    place.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    place.chmod(0o600)
    return place


class Two:
    """Two operators of an office, one of whose accounts asks for two signatures."""

    def __init__(self, planted: Planted, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.planted, self.office, self.patch = planted, planted.office, patch
        self.second = key_file(folder / "second.key")
        with patch.context() as other:
            other.setenv("DPHIST_OPERATOR_KEY", str(self.second))
            public = self.office.run("ledger", "key", "--json").json["public"]
        words = ["--privacy-unit", "visit", "--neighbours", "add_remove", "--total", "3", "--signatures", "2"]
        for done in (
            self.office.run("ledger", "add-key", public, "--name", "ben"),
            self.office.run("ledger", "open", "twice", *words),
        ):
            assert done.code == 0, done.err

    def sign(self, number: int) -> Ran:
        with self.patch.context() as other:
            other.setenv("DPHIST_OPERATOR_KEY", str(self.second))
            return self.office.run("ledger", "sign", str(number))

    def adopt(self, *more: str) -> int | None:
        done = self.office.run(*ADOPT, *more, "--json")
        assert done.code == 0, done.err
        waits: int | None = done.json["waits"]
        return waits


@pytest.fixture
def two(planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Two:
    return Two(planted, tmp_path, monkeypatch)


@pytest.mark.parametrize("row", DENIED)
def test_an_adoption_that_denies_a_row_needs_another_operators_signature(two: Two, row: str) -> None:
    plant, carried = DENIED[row]
    office = two.office
    plant(two.planted)
    number = two.adopt()
    assert number is not None
    assert "must sign it: dphist ledger sign" in " ".join(office.run(*ADOPT).out.split())
    refused_with_the_way_out(office.release())
    alone = office.run("ledger", "sign", str(number))
    assert alone.code == 1
    assert two.planted.generation == 1
    lapsed = two.sign(number)
    assert lapsed.code == 1 and "dphist store adopt --reason TEXT" in told(lapsed)
    number = two.adopt()
    assert number is not None
    signed = two.sign(number)
    assert signed.code == 0, signed.err
    assert two.planted.generation == 2 and two.planted.spent() == carried
    office.released()


def test_a_row_that_is_planted_while_an_adoption_waits_is_judged_again(two: Two) -> None:
    head(two.planted)
    number = two.adopt()
    assert number is not None
    two.planted.charge()
    refused = two.sign(number)
    assert refused.code == 1 and "the witness has seen more" in told(refused) and two.planted.generation == 1
    again = two.adopt()
    assert again is not None and two.sign(again).code == 0 and two.planted.spent() == 3
    two.office.released()


def test_an_adoption_that_denies_nothing_needs_one_signature(two: Two) -> None:
    two.office.released()
    assert two.adopt() is None
    two.office.write_spec(release="others")
    two.office.released()


@pytest.mark.parametrize("planted", ["file"], indirect=True)
def test_a_witness_that_begins_anew_needs_two_signatures(two: Two, planted: Planted) -> None:
    planted.office.witness.unlink()
    stated = ("--spent-elsewhere", "health=0", "--spent-elsewhere", "twice=0")
    number = two.adopt(*stated)
    assert number is not None and not planted.office.witness.exists()
    assert planted.office.release().code == 1
    assert two.sign(number).code == 0
    planted.office.released()
