"""A store that an earlier version made goes on with this one: see `make_store.py`.

Nothing here may depend on when or by which version it was made: periods are named, and before anything is charged its
operator says that this machine's clock is right.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import tarfile
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from golden.kept_store import ARCHIVE, COLLECTED, PERIODS, RELEASED, STORE, WITNESS, KeptStore, unpacked
from office import ran

from dphist_pipeline.ledger import opened
from dphist_pipeline.publishing.notices import with_notice
from dphist_pipeline.publishing.published_files import CARD

pytestmark = pytest.mark.draws_alike

CATALOGUE = "catalog.duckdb"
LATEST = {("weekly", PERIODS[0]): 2}
MACHINES = re.compile(rb"/(?:home|root|work|Users|private|mnt|opt|builds?)/")


@pytest.fixture
def kept(tmp_path: Path) -> KeptStore:
    return unpacked(tmp_path / "elsewhere")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> KeptStore:
    """The store after its upgrade, which built the catalogue and the pages for tests that ask something else."""
    made = unpacked(tmp_path_factory.mktemp("once") / "elsewhere")
    made.run("store", "upgrade")
    return made


@pytest.fixture
def catalogued(once: KeptStore, tmp_path: Path) -> KeptStore:
    return KeptStore(shutil.copytree(once.folder, tmp_path / "elsewhere"))


def cells(folder: Path) -> list[dict[str, object]]:
    """Every cell of a publication, of all tables of a family."""
    return [row for path in sorted(folder.rglob("histogram.parquet")) for row in pq.read_table(path).to_pylist()]


def test_the_archive_is_small_and_tells_nothing_of_the_machine_that_made_it(kept: KeptStore) -> None:
    assert ARCHIVE.stat().st_size <= 2**20
    with tarfile.open(ARCHIVE) as archive:
        members = archive.getmembers()
    assert {(member.uid, member.gid, member.uname, member.gname, member.mtime) for member in members} == {
        (0, 0, "", "", members[0].mtime)
    }
    names = [member.name for member in members]
    assert names == sorted(names, key=lambda name: Path(name)) and CATALOGUE not in " ".join(names)
    for path in kept.folder.rglob("*"):
        assert path.is_dir() or not MACHINES.search(path.read_bytes()), path


def test_only_its_owner_reads_what_is_confidential(kept: KeptStore) -> None:
    confidential = kept.store / "confidential"
    assert stat.S_IMODE(confidential.stat().st_mode) == 0o700
    journal = [path for path in (confidential / "journal").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in [*journal, kept.folder / WITNESS]} == {0o600}


def test_its_ledger_and_every_published_file_are_whole(kept: KeptStore) -> None:
    told = kept.run("ledger", "verify", "--store", STORE, "--json").json
    assert told["publications"] == len(RELEASED) + len(LATEST) + len(COLLECTED) + 1  # one is withdrawn


def as_published(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without the notices on cards, which follow what became of their publications."""
    return {
        name: with_notice(made.decode(), {}).encode() if name.endswith(CARD) else made for name, made in files.items()
    }


def test_its_releases_replay_to_the_same_bytes_and_spend_nothing(kept: KeptStore) -> None:
    files, spent = kept.files(), kept.spent()
    for name, period in RELEASED:
        told = kept.released(name, period)
        assert told["replayed"] and told["revision"] == LATEST.get((name, period), 1)
    collected = kept.run("local", "publish", "ages.yaml", "reports/ages.parquet", "--json").json
    assert [made["replayed"] for made in collected["releases"]] == [True, True]
    assert (kept.files(), kept.spent()) == (files, spent)


def tree(kept: KeptStore) -> dict[str, bytes]:
    """Every file of the public folder."""
    return {str(path): path.read_bytes() for path in (kept.store / "public").rglob("*") if path.is_file()}


def refused(kept: KeptStore, *words: str) -> str:
    with kept.used():
        done = ran(*words)
    assert done.code == 1, done.out
    return " ".join(done.err.split())


def test_nothing_is_written_into_it_before_its_upgrade(kept: KeptStore) -> None:
    kept.allowed()
    before, spent = tree(kept), kept.spent()
    again = ("release", "weekly.yaml", "--period", PERIODS[0])
    for words in (
        [*again, "--revise", "--reason", "other records"],
        ["release", "waiting.yaml"],
        ["publish", "waiting.yaml", "--approved-by", "Ada"],
        ["withdraw", "weekly", PERIODS[0], "--reason", "wrong"],
        ["withdraw", "ages_city", "all", "--reason", "wrong"],
        ["store", "pages"],
        ["local", "publish", "ages.yaml", "reports/ages.parquet", "--revise", "--reason", "again"],
    ):
        assert "run `dphist store upgrade`, which spends nothing" in refused(kept, *words), words
    kept.run(*again)
    kept.run("answer", "looked_at")
    with kept.used():
        told = {one["check"]: one for one in ran("doctor", "--json").json["checks"]}
    assert told["store"]["state"] == "fault" and "store upgrade" in told["store"]["mend"]
    assert (tree(kept), kept.spent()) == (before, spent)


def test_it_is_upgraded_once_and_earlier_versions_refuse_it_then(kept: KeptStore) -> None:
    described, released = kept.store / "store.json", kept.files()
    weekly = kept.store / "public" / "weekly"
    gone = [
        weekly / f"downloads/period={PERIODS[0]}/revision=1/table.txt",
        weekly / f"period={PERIODS[0]}/revision=1/pages.json",
        kept.store / "public" / "croissant.json",
    ]
    for path in gone:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("what was withdrawn")
    told = kept.run("store", "upgrade", "--json").json
    assert told["gone"] == sorted(path.relative_to(kept.store / "public").as_posix() for path in gone)
    assert (told["was"], told["form"], json.loads(described.read_bytes())["schema_version"]) == (1, 2, 2)
    assert not any(path.exists() for path in gone) and as_published(kept.files()) == as_published(released)
    assert "deleted" not in kept.run("store", "upgrade").out
    described.write_text(described.read_text().replace('"schema_version": 2', '"schema_version": 3'))
    assert "has form 3, which a later version of dphist gave it" in refused(kept, "ledger", "verify")


@pytest.mark.slow
def test_lost_publications_come_back_from_the_stored_answers_with_the_same_values(catalogued: KeptStore) -> None:
    spent = catalogued.spent()
    (catalogued.folder / "data" / "admissions.parquet").unlink()  # no record is read
    for name, period in [RELEASED[0], *RELEASED[2:]]:
        folder = catalogued.published(name, period, LATEST.get((name, period), 1))
        before = cells(folder)
        shutil.rmtree(folder)
        catalogued.released(name, period)
        # Columns of later versions stand beside those that the store had.
        again = [{name: row[name] for name in old} for old, row in zip(before, cells(folder), strict=True)]
        assert before and again == before
    assert catalogued.spent() == spent


@pytest.mark.slow
def test_its_questions_have_the_answers_that_they_had(catalogued: KeptStore) -> None:
    assert catalogued.answers() == catalogued.answers_then()


@pytest.mark.slow
def test_its_catalogue_is_built_anew_and_holds_every_release_that_counts(kept: KeptStore) -> None:
    assert not (kept.store / "public" / CATALOGUE).exists()
    kept.run("store", "upgrade")
    with duckdb.connect(str(kept.store / "public" / CATALOGUE), read_only=True) as connection:
        rows = connection.execute("SELECT release, CAST(period AS VARCHAR), revision FROM dph_releases").fetchall()
        told = connection.execute("SELECT estimate FROM ages_city").fetchall()
    tables = {(f"family_{name}", "all", 1) for name in ("age", "sex", "ward", "age_sex")}
    collected = {(name, "all", 1) for name in COLLECTED}
    revised = {(*key, revision) for key, revision in LATEST.items()}
    assert {*rows} == {(*key, 1) for key in RELEASED if key[0] != "family"} | revised | tables | collected
    assert told == [(row["estimate"],) for row in cells(kept.published("ages_city", "all"))]


@pytest.mark.slow
@pytest.mark.parametrize("now", ["", "2036-02-29T06:00:00Z"])
def test_a_revision_is_charged_once_and_leaves_the_one_before_it(
    catalogued: KeptStore, now: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, spent = as_published(catalogued.files()), Fraction(catalogued.spent())
    if now:
        monkeypatch.setattr(opened, "utc_now", lambda: now)
    catalogued.allowed(now[:10])
    spec = catalogued.folder / "weekly.yaml"
    spec.write_text(spec.read_text().replace('"period_column"', '"period_format": "iso", "period_column"'))
    for replayed in (False, True):
        told = catalogued.released("weekly", PERIODS[1], "--revise", "--reason", "more records")
        assert (told["revision"], told["replayed"]) == (2, replayed)
    assert Fraction(catalogued.spent()) == spent + Fraction(1, 2)
    assert as_published({name: content for name, content in catalogued.files().items() if name in files}) == files
    catalogued.run("ledger", "verify")


@pytest.mark.slow
def test_what_waits_is_approved_for_nothing_and_published_once(catalogued: KeptStore) -> None:
    spent = catalogued.spent()
    assert catalogued.released("waiting", "all")["awaits_approval"]
    assert not catalogued.published("waiting", "all").exists()
    (catalogued.folder / "data" / "admissions.parquet").unlink()
    catalogued.run("publish", "waiting.yaml", "--approved-by", "Ada")
    files = catalogued.files()
    catalogued.run("publish", "waiting.yaml", "--approved-by", "Ada")
    assert catalogued.released("waiting", "all")["replayed"]
    assert (catalogued.files(), catalogued.spent()) == (files, spent)
    catalogued.run("ledger", "verify")


@pytest.mark.slow
def test_a_publication_is_withdrawn_and_the_withdrawn_one_stays_so(catalogued: KeptStore) -> None:
    catalogued.run("withdraw", "looked_at", "all", "--reason", "the wrong column")
    with catalogued.used():
        for name in ("looked_at", "mistaken"):
            refused = ran("release", f"{name}.yaml")
            assert (refused.code, "withdrawn" in refused.err) == (1, True)
    catalogued.run("ledger", "verify")


@pytest.mark.slow
def test_its_pages_can_be_rendered_anew(catalogued: KeptStore) -> None:
    kept = catalogued
    kept.allowed()
    told = kept.run("store", "pages", "--json").json
    assert told["left"] == {} and len(told["anew"]) + len(told["same"]) >= len(RELEASED) + 1
    for page in (kept.store / "public").rglob(CARD):
        assert "undefined" not in page.read_text(encoding="utf-8").lower()
    assert kept.run("ledger", "verify").code == 0
