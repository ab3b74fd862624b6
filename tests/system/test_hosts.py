"""Several hosts of one store: each draws for its own charges, and says which host another charge belongs to."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from error_codes import coded, ledger_refuses
from office import Office
from system.small_release import ACCOUNT, EPSILON, NAME, WEEK, WEEKS, Project, assert_whole, at_once, charges, start

from dphist_pipeline.errors import AfterCharge, Halted
from dphist_pipeline.ledger.entries import ChargeRequest, Folder
from dphist_pipeline.ledger.errors import LedgerError, WitnessMissing
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing import store as store_module
from dphist_pipeline.releasing._plans import request_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import FOLDER, Store, host_name
from dphist_pipeline.releasing.store_decisions import StoreDecisions

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="hosts and their charges")

Hosts = tuple[Project, Project]
ELSEWHERE = {"charged_elsewhere", "published_elsewhere"}
SOAK_SECONDS, AT_ONCE = 600, 4


@pytest.fixture(params=["file", pytest.param("on_server", marks=pytest.mark.outside)])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Hosts:
    """Two hosts of a store, whose ledger and witness are files or lie on a server."""
    server = request.getfixturevalue("database_server") if request.param == "on_server" else None
    first = Project.make(tmp_path / "first", server=server, total=Fraction(100_000))
    return first, first.another_host(tmp_path / "second")


def adopt(project: Project) -> None:
    with project.witnessed():
        StoreDecisions.adopt(project.store(), "its host is lost", {})


def charged_only(project: Project) -> Project:
    """Charges a week, and is killed before it draws."""
    boundaries = start(project, WEEKS[1]).boundaries
    assert start(project, kill_at=boundaries.index("commit") + 2).killed
    assert charges(project) == [1] and not (project.root / "confidential/journal" / NAME / WEEK).exists()
    return project


def test_two_hosts_release_other_periods_of_the_same_release(two: Hosts) -> None:
    told: list[str] = []
    for host, week in zip(two * 2, WEEKS, strict=False):
        assert not host.release(week, progress=told.append).replayed
    assert not [step for step in told if "another place" in step], "hosts have places of their own"
    for host, week in zip(two * 2, WEEKS, strict=False):
        assert host.release(week).replayed and two[0].spent() == 4 * EPSILON
    ids = {json.loads((host.root / "confidential" / FOLDER).read_bytes())["id"] for host in two}
    named = {made.folder.id for made in Statement.of(two[1].ledger(), ACCOUNT).charges if made.folder}
    assert named == ids and len(ids) == 2


@pytest.mark.slow
def test_another_host_refuses_a_charge_and_says_whose_it_is(two: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module.socket, "gethostname", lambda: "ledger-01.office.example")
    first, second = charged_only(two[0]), two[1]
    with first.witnessed():
        first.ledger().charge(asked(first, WEEKS[2]))
    with pytest.raises(
        LedgerError,
        check=coded("charged_elsewhere"),
        match=r"on host ledger-01\.office\.example, whose .* folder [0-9a-f]{12}",
    ):
        second.release(WEEKS[2])
    for again in range(2):
        with ledger_refuses("charged_elsewhere", match=r"Nothing was drawn or spent.*store adopt.*--revise"):
            second.release(reason="try again" if again else "")
    assert not second.files("confidential/journal") and charges(second) == [1]
    assert first.release().audit["revision"] == 1
    with pytest.raises(
        AfterCharge, check=coded("published_elsewhere"), match="its files are not in this host's public folder"
    ):
        second.release()
    shutil.copytree(first.published(), second.published())
    assert second.release().replayed and second.spent() == 3 * EPSILON


def asked(project: Project, week: str) -> ChargeRequest:
    """What a release of that week asks of the ledger."""
    store = project.store()
    return replace(request_of(ReleaseSpec.load(project.spec), store.id, week), folder=store.own_folder())


@pytest.mark.slow
def test_taking_over_is_a_decision_and_charges_anew(two: Hosts) -> None:
    first, second = charged_only(two[0]), two[1]
    adopt(second)
    with ledger_refuses("charge_lost", match="--revise"):
        second.release()
    assert second.release(reason="its host is lost").audit["revision"] == 2
    assert second.spent() == 3 * EPSILON
    # The first host is found again, and draws nothing for what it charged before.
    with pytest.raises(AfterCharge, check=coded("published_elsewhere")):
        first.release()
    assert_whole(second.published(revision=2))
    assert not (first.root / "confidential/journal" / NAME / WEEK).exists()


def test_a_folder_that_is_put_back_finishes_what_it_drew(two: Hosts) -> None:
    first, second = two
    boundaries = start(first, WEEKS[1]).boundaries
    assert start(first, kill_at=len(boundaries) - boundaries[::-1].index("os.link") + 6).killed
    drawn = first.files(f"confidential/journal/{NAME}/{WEEK}")
    assert len(drawn) == 1 and not first.published().exists()
    adopt(second)
    assert first.release().audit["revision"] == 1
    assert first.files(f"confidential/journal/{NAME}/{WEEK}") == drawn


def test_what_is_rejected_may_be_revised_by_any_host(two: Hosts) -> None:
    first, second = charged_only(two[0]), two[1]
    assert start(second, reason="its host is slow", reject=True).revision == 1
    assert second.release(reason="anew").audit["revision"] == 2
    assert start(first, reject=False).refusal in ELSEWHERE


def test_two_hosts_at_once_make_one_charge_and_one_draw(two: Hosts) -> None:
    outcomes = at_once([(host, WEEK, "") for host in two * 2])
    refused = Counter(made.refusal for made in outcomes)
    assert refused[""] == 2 and set(refused) <= {"", *ELSEWHERE}
    assert charges(two[0]) == [1]
    assert sorted(len(host.files("confidential/journal")) for host in two) == [0, 1]


def test_a_charge_of_an_earlier_version_belongs_to_the_host_that_did_not_join(two: Hosts) -> None:
    first, second = two
    for host in two:
        host.ledger()
    with first.witnessed():
        first.ledger().charge(replace(asked(first, WEEK), folder=None))
    with ledger_refuses("charged_elsewhere", match="by a version that named none"):
        second.release()
    assert not second.files("confidential/journal")
    (first.root / "confidential" / FOLDER).unlink()  # nor has the folder of an earlier version an id
    assert first.release().audit["revision"] == 1 and first.release().replayed
    here = first.store().own_folder()
    assert first.store().own_folder() == here
    with pytest.raises(AfterCharge, check=coded("published_elsewhere")):
        second.release()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"id": 7}', b'{"id": "../../x"}'])
def test_a_damaged_id_is_refused_before_anything_is_spent(tmp_path: Path, content: bytes) -> None:
    project = Project.make(tmp_path / "project")
    (project.root / "confidential" / FOLDER).write_bytes(content)
    with pytest.raises(
        Halted, check=coded("store_unusable"), match=r"a damaged confidential/folder\.json: put it back"
    ):
        project.release()
    assert project.spent() == 0


@pytest.mark.slow
def test_who_sees_no_confidential_folder_is_told_of_this_hosts_missing_files_alone(
    two: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host, week in zip(two, WEEKS, strict=False):
        host.release(week)
    monkeypatch.setattr(store_module, "may", lambda path, mode: path.name != "confidential")
    monkeypatch.setattr(Store, "own_folder", refuse_reading)
    for host in two:
        with host.witnessed():
            assert host.store().verify()[1:] == (1, [])
    shutil.rmtree(two[1].published(WEEKS[1]))
    with two[1].witnessed():
        assert two[1].store().verify()[2] == [f"{NAME}/period={WEEKS[1]}/revision=1"]


def refuse_reading(store: Store) -> Folder:
    raise PermissionError(store.confidential)


# Making another host, and disks that machines share.


def test_joining_needs_the_ledger_and_the_witness_of_the_other_hosts(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.opened()
    there = tmp_path / "second"
    refused = office.run("init", "--join", "--store", there)
    assert refused.code == 1 and "DPHIST_LEDGER" in refused.err and not there.exists()
    monkeypatch.setenv("DPHIST_LEDGER", f"sqlite:///{office.store}/ledger.sqlite")
    made = office.run("init", "--join", "--store", there, "--json")
    assert made.code == 0 and made.json["id"] == Store.open(office.store).id
    assert office.run("ledger", "show", "--store", there).code == 0
    with pytest.raises(Halted, check=coded("store_unusable"), match="something is there already"):
        Store.join(there)
    monkeypatch.setenv("DPHIST_WITNESS", str(tmp_path / "other.sqlite"))
    Witness.at().enrol("another store", "another entry")
    with pytest.raises(WitnessMissing, match="does not know the ledger"):
        Store.join(tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_sqlite_on_a_network_disk_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project.make(tmp_path / "project")
    ledger = project.store().ledger()
    monkeypatch.setattr("dphist_pipeline.ledger.database.network_disk", lambda path: "nfs4")
    for call in (ledger.entries, project.release, lambda: Store.create(tmp_path / "another")):
        with pytest.raises(
            LedgerError,
            check=coded("file_unusable"),
            match=r"network file system \(nfs4\), where SQLite's locks .*PostgreSQL",
        ):
            call()
    assert not (tmp_path / "another" / "public").exists()


def test_confidential_files_on_a_network_disk_need_a_ledger_on_a_server(
    two: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "network_disk", lambda path: "nfs4")
    for host in two:
        if host.server is None:
            with pytest.raises(
                Halted, check=coded("store_unusable"), match=r"network file system \(nfs4\).*ledger move"
            ):
                host.release()
        else:
            host.release(WEEKS[two.index(host)])


# Four processes in two hosts, killed at random.


def hammer(two: Hosts, seconds: float, weeks_at_once: int) -> Counter[str]:
    """Releases week before week from both hosts, kills every other process somewhere, and has all weeks finished."""
    # Back in time: a quick machine would come to weeks that have not ended.
    chance, found, ends = random.Random(22), Counter[str](), time.monotonic() + seconds
    boundaries = len(start(two[0], WEEKS[0]).boundaries)
    weeks = [WEEKS[0]]

    def work(host: Project, week: str, kill_at: int) -> str:
        made = start(host, week, kill_at=kill_at)
        return "killed" if made.killed else made.refusal or ("replayed" if made.replayed else "released")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        while len(weeks) == 1 or time.monotonic() < ends:
            batch = [
                (date.fromisoformat(weeks[-1]) - timedelta(weeks=1 + of)).isoformat() for of in range(weeks_at_once)
            ]
            weeks += batch
            calls = [(chance.choice(two), week, chance.randrange(1, boundaries)) for week in batch * 3]
            chance.shuffle(calls)
            found.update(pool.map(lambda call: work(*call), calls))
            # Whichever host a week belongs to finishes it; the other one refuses.
            for week in batch:
                finished = [work(host, week, 0) for host in two]
                found.update(finished)
                assert set(finished) <= {"released", "replayed", *ELSEWHERE}, finished
    check(two, weeks)
    return found


def check(two: Hosts, weeks: list[str]) -> None:
    """Every week was published once, and every charge has one draw."""
    ledger = two[0].ledger()
    charged = [(made.period, made.revision, made.folder) for made in Statement.of(ledger, ACCOUNT).charges]
    assert sorted((period, revision) for period, revision, _ in charged) == [(week, 1) for week in sorted(weeks)]
    assert Statement.of(ledger, ACCOUNT).spent == len(weeks) * EPSILON
    for week in weeks:
        assert [host.published(week).exists() for host in two].count(True) == 1, week
        assert [(host.root / "confidential/journal" / NAME / week).exists() for host in two].count(True) == 1, week
    for host in two:
        own = Folder(host.store().own_folder().id, host_name())
        assert len(host.files("confidential/journal")) == [folder for _, _, folder in charged].count(own)
        assert host.store().verify()[1] == [folder for _, _, folder in charged].count(own)
    witness = two[0].store().witness(ledger)._file
    with witness.session("read") as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM answer").scalar() == len(weeks)


def test_two_hosts_killed_at_random_publish_every_period_once(two: Hosts) -> None:
    assert sum(hammer(two, 0, 1).values()) >= 5


@pytest.mark.soak
def test_two_hosts_killed_at_random_for_ten_minutes_publish_every_period_once(
    two: Hosts, capsys: pytest.CaptureFixture[str]
) -> None:
    found = hammer(two, SOAK_SECONDS, 8)
    with capsys.disabled():
        print(f"\n{dict(found)}")
    assert found["killed"] >= 20 and found["released"] >= 5
