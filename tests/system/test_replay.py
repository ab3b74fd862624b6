"""Asked again, a release gives back what it published, or says why it cannot; either way it spends nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from error_codes import coded
from system.small_release import (
    EPSILON,
    FILES,
    NAME,
    WEEKS,
    Project,
    assert_whole,
    charges,
    start,
)

from dphist_pipeline.errors import AfterCharge, DphistError
from dphist_pipeline.publishing.published_files import AUDIT, PublishedFilesDamaged, audit_digest
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="replays of one office; no test asks its catalogue")

REASON = "the source was corrected"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.make(tmp_path_factory.mktemp("made") / "project")


@pytest.fixture(scope="module")
def made_and_released(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    copy = made.copy(tmp_path_factory.mktemp("released") / "project")
    copy.release()
    return copy


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    """A project that has released nothing yet."""
    return made.copy(tmp_path / "project")


@pytest.fixture
def released(made_and_released: Project, tmp_path: Path) -> Project:
    """A project whose week is released, and whose source is gone: whoever reads a record now fails."""
    copy = made_and_released.copy(tmp_path / "project")
    copy.source.unlink()
    return copy


@contextmanager
def refused(project: Project, code: str, says: str) -> Iterator[None]:
    """Refused, and the whole project looks the same after as before, down to empty folders."""
    before = listing(project.folder)
    with pytest.raises(DphistError, check=coded(code), match=says):
        yield
    assert listing(project.folder) == before


def listing(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_a_replay_gives_the_same_bytes_spends_nothing_and_reads_no_record(released: Project) -> None:
    before = listing(released.folder)
    again = released.release()
    assert again.replayed and again.path == released.published()
    assert listing(released.folder) == before
    assert charges(released) == [1] and released.spent() == EPSILON


@pytest.mark.slow
def test_deleted_files_are_rebuilt_from_the_journal_without_charge_or_record(released: Project) -> None:
    before = released.files()
    released.forget("public")
    assert released.release().replayed
    assert released.files() == before
    assert_whole(released.published())
    assert charges(released) == [1] and released.spent() == EPSILON


def test_a_release_whose_files_and_journal_are_gone_is_not_drawn_again(project: Project) -> None:
    project.release()
    project.forget("public")
    project.forget("confidential/journal")
    with refused(project, "answers_lost", "from a backup"):
        project.release()


def test_a_version_that_makes_other_values_of_the_same_answers_publishes_none(released: Project, monkeypatch) -> None:
    released.forget("public")
    made = MechanismRun.estimate
    monkeypatch.setattr(MechanismRun, "estimate", lambda *given: replace(one := made(*given), values=one.values + 1))
    with refused(released, "values_differ", "Use the version of dphist-pipeline that published it"):
        released.release()


def test_what_may_have_been_read_before_a_kill_is_not_drawn_again(project: Project, tmp_path: Path) -> None:
    boundaries = start(project.copy(tmp_path / "whole")).boundaries
    # After the copies of the spec and of how it cuts time.
    _, _, appears, *_ = (number for number, name in enumerate(boundaries) if name == "os.rename")
    assert start(project, kill_at=appears + 2).killed
    assert project.published().exists(), "it was to be killed right after its files became visible"
    project.forget("public")
    project.forget("confidential/journal")
    with pytest.raises(AfterCharge, check=coded("answers_lost")):
        project.release()
    assert not project.files("public") and not project.files("confidential/journal")


@pytest.mark.parametrize("name", sorted(FILES - {"card.html", "deployment.yaml"}))  # pages are not sealed
def test_altered_files_are_refused_and_made_anew_once_they_are_moved_away(released: Project, name: str) -> None:
    good = released.files("public")
    altered = released.published() / name
    content = altered.read_bytes()
    altered.write_bytes(
        content.replace(b'"reason": ""', b'"reason": "my own"') if name == "audit.json" else content[1:]
    )
    with refused(
        released, "published_files_damaged", f"altered {name}.*Move that folder away and run the same command"
    ):
        released.release()
    released.published().rename(released.folder / "moved away")
    released.release()
    assert released.files("public") == good


@pytest.mark.slow
def test_verify_reads_every_published_file_against_the_ledger(released: Project) -> None:
    store = Store.open(released.root)
    entries = len(released.ledger().entries())
    assert store.verify() == (entries, 1, [])
    for name in sorted(FILES - {"card.html", "deployment.yaml"}):
        path = released.published() / name
        content = path.read_bytes()
        path.write_bytes(content.replace(b'"patient_id"', b'"row"') if name == "audit.json" else content[1:])
        with pytest.raises(PublishedFilesDamaged, match=name):
            store.verify()
        path.write_bytes(content)
    released.published().rename(released.folder / "moved away")
    whole, missing = store.verify()[1:]
    assert (whole, missing) == (0, [str(released.published().relative_to(released.root / "public"))])


@pytest.mark.parametrize(
    "forged", [{"privacy_unit": "row"}, {"max_rows_per_unit": 1}, {"mechanism": "dpcube"}, {"settings": {"more": 1}}]
)
def test_an_audit_that_promises_what_the_charged_spec_does_not_is_refused(
    released: Project, forged: dict[str, object]
) -> None:
    path = released.published() / AUDIT
    audit = json.loads(path.read_bytes()) | forged
    path.write_text(json.dumps(audit | {"audit_digest": audit_digest(audit)}))
    with pytest.raises(PublishedFilesDamaged, match="not what the ledger recorded"):
        Store.open(released.root).verify()
    with refused(released, "published_files_damaged", "not what the ledger recorded"):
        released.release()


def test_a_withdrawal_that_the_ledger_does_not_know_is_named(released: Project) -> None:
    path = released.published() / AUDIT
    audit = json.loads(path.read_bytes()) | {"withdrawn": {"at": "2026-11-29T00:00:00Z", "reason": "forged"}}
    path.write_text(json.dumps(audit | {"audit_digest": audit_digest(audit)}))
    with pytest.raises(PublishedFilesDamaged, match="not withdrawn by the ledger"):
        Store.open(released.root).verify()


def test_a_pipe_in_place_of_an_audit_is_refused_and_nobody_waits_for_it(released: Project) -> None:
    path = released.published() / AUDIT
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(PublishedFilesDamaged, match=AUDIT):
        released.release()


def test_a_missing_file_is_named(released: Project) -> None:
    (released.published() / "groups.parquet").unlink()
    with refused(released, "published_files_damaged", "missing or altered groups.parquet"):
        released.release()


def test_an_audit_that_cannot_be_read_is_refused_with_what_to_do(released: Project) -> None:
    (released.published() / "audit.json").write_text("{")
    with refused(released, "published_files_damaged", "altered audit.json. Move that folder away and run the same"):
        released.release()
    released.published().rename(released.folder / "moved away")
    assert released.release().replayed


@pytest.mark.slow
def test_a_journal_of_another_charge_is_refused(project: Project) -> None:
    for week in WEEKS[:2]:
        project.release(week)
    project.forget("public")
    mine, other = (project.root / "confidential/journal" / NAME / week / "1" for week in WEEKS[:2])
    shutil.rmtree(mine)
    shutil.copytree(other, mine)
    with refused(project, "journal_mismatch", "made for another charge"):
        project.release()


def test_a_damaged_journal_is_refused(released: Project) -> None:
    released.forget("public")
    (answer,) = (released.root / "confidential/journal").rglob("*.answer")
    answer.write_bytes(answer.read_bytes()[:-8])
    with refused(released, "journal_mismatch", "is damaged"):
        released.release()


@pytest.mark.slow
def test_a_changed_spec_is_refused_and_charged_as_a_revision_when_a_reason_is_given(project: Project) -> None:
    first = project.release()
    project.write_spec(max_rows_per_unit=1)
    with refused(project, "already_charged", "max_rows_per_unit was '2', is now '1'. .*--revise --reason"):
        project.release()
    second = project.release(reason=REASON)
    assert (second.replayed, second.audit["revision"], second.audit["reason"]) == (False, 2, REASON)
    assert_whole(first.path)
    assert_whole(second.path)
    assert charges(project) == [1, 2] and project.spent() == 2 * EPSILON


@pytest.mark.slow
def test_a_reason_makes_a_revision_once_and_gives_it_back_ever_after(project: Project) -> None:
    with refused(project, "nothing_to_revise", "Leave out --revise"):
        project.release(reason=REASON)
    project.release()
    for reason, revision in ((REASON, 2), ("another reason", 3), (REASON, 2), ("another reason", 3), ("", 3)):
        assert project.release(reason=reason).audit["revision"] == revision
    assert charges(project) == [1, 2, 3] and project.spent() == 3 * EPSILON


@pytest.mark.slow
def test_the_same_reason_for_a_changed_spec_makes_another_revision(project: Project) -> None:
    project.release()
    for rows, revision in ((1, 2), (3, 3), (1, 2)):
        project.write_spec(max_rows_per_unit=rows)
        assert project.release(reason=REASON).audit["revision"] == revision
    assert charges(project) == [1, 2, 3]


@pytest.mark.slow
def test_titles_owners_schedules_and_delays_are_edited_for_nothing(released: Project) -> None:
    before = released.files()
    released.write_spec(title="Admissions", owners=["team:statistics"], schedule="0 6 * * MON", release_delay_days=7)
    assert released.release().replayed
    assert released.files() == before
    assert charges(released) == [1] and released.spent() == EPSILON


@pytest.mark.slow
def test_a_ledger_restored_from_an_older_backup_is_refused(project: Project) -> None:
    project.release(WEEKS[1])
    ledger = project.root / "ledger.sqlite"
    older = ledger.read_bytes()
    project.release()
    ledger.write_bytes(older)
    for week in WEEKS[:3]:
        with refused(project, "ledger_outdated", "older backup"):
            project.release(week)


def test_a_missing_ledger_is_refused_and_none_is_made(released: Project) -> None:
    (released.root / "ledger.sqlite").unlink()
    for week in WEEKS[:2]:
        with refused(released, "ledger_missing", "Put it back"):
            released.release(week)


@pytest.mark.slow
def test_a_ledger_that_cannot_be_written_is_refused(released: Project) -> None:
    (released.root / "ledger.sqlite").chmod(0o444)
    for week in WEEKS[:2]:
        with refused(released, "file_unusable", "write permission"):
            released.release(week)


def test_a_ledger_edited_by_hand_is_refused(released: Project) -> None:
    with closing(sqlite3.connect(released.root / "ledger.sqlite")) as connection, connection:
        (rule,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'never_updated'").fetchone()
        connection.execute("DROP TRIGGER never_updated")
        connection.execute("UPDATE ledger_entry SET body = replace(body, '1/10', '1/100') WHERE kind = 'charged'")
        connection.execute(rule)
    with refused(released, "ledger_altered", "entry 5.*altered or damaged"):
        released.release()


@pytest.mark.slow
def test_the_ledger_of_another_store_is_refused(released: Project, tmp_path: Path) -> None:
    other = Project.make(tmp_path / "other")
    shutil.copy(other.root / "ledger.sqlite", released.root / "ledger.sqlite")
    with refused(released, "ledger_foreign", "this store's own ledger"):
        released.release()


@pytest.mark.slow
def test_a_second_store_on_one_ledger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPHIST_LEDGER", f"sqlite:///{tmp_path / 'shared.sqlite'}")
    project = Project.make(tmp_path / "project")
    project.release()
    with refused(project, "file_exists", "is there already"):
        Store.create(project.folder / "second")
    # One that is made by hand, with the id of this ledger, meets an account that was opened for another store.
    described = project.root / "store.json"
    content = {**json.loads(described.read_bytes()), "id": "another store"}
    described.write_text(json.dumps(content), encoding="utf-8")
    for week in WEEKS[:2]:
        with refused(project, "account_disagrees", "One account serves one store only"):
            project.release(week)


@pytest.mark.parametrize("change", [{"privacy_unit": "ward"}, {"neighbours": "substitute"}])
def test_an_account_with_other_terms_than_the_spec_is_refused(project: Project, change: dict[str, str]) -> None:
    project.write_spec(**change)
    with refused(project, "account_disagrees", f"{next(iter(change))} is .*Correct the spec"):
        project.release()


def test_a_folder_without_a_store_is_refused_and_none_is_made(project: Project) -> None:
    shutil.rmtree(project.root)
    with refused(project, "store_missing", "dphist init"):
        project.release()


@pytest.mark.slow
def test_a_list_that_grew_is_told_by_the_entry_that_came(project: Project) -> None:
    codes = [f"code {number}" for number in range(30)]
    project.write_spec(axes=[{"column": "ward", "values": codes, "other": True}])
    project.release()
    project.write_spec(axes=[{"column": "ward", "values": [*codes, "new"], "other": True}])
    with refused(project, "already_charged", "was '30 entries', is now '31 entries, among them ..new..'"):
        project.release()
