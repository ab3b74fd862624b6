"""`dphist store pages`: pages of an earlier version are rendered anew, and everything goes on accepting them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from office import AGE, WARD, Office

from dphist_pipeline.health import _publications as publications
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing import published_release
from dphist_pipeline.publishing._published_pages import CARD, renderings, without_marks
from dphist_pipeline.publishing._published_pages import RENDERED as NAME
from dphist_pipeline.publishing.published_files import (
    PublishedFilesDamaged,
    PublishedFolder,
    audit_digest,
    digest_of,
    read_audit,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.draws_alike,
]

FALSE = "<p>A sentence that a later version corrected.</p></main>"
MADE: dict[str, dict[str, Any]] = {
    "noise of cells": {"axes": [AGE, WARD]},
    "groups beside cells": {"axes": [AGE], "mechanism": "ahp"},
    "a tree": {"axes": [AGE], "mechanism": "boost"},
    "experts, and quality": {
        "axes": [AGE, WARD],
        "mechanism": "adaptive",
        "quality": {"share": "1/10", "by": ["ward"]},
    },
}


def as_an_earlier_version_wrote_it(folder: Path) -> None:
    """Puts a false sentence on the card, with an audit that holds its digest."""
    card, audit = folder / CARD, read_audit(folder)
    card.write_text(card.read_text(encoding="utf-8").replace("</main>", FALSE), encoding="utf-8")
    audit["files"][CARD] = hashlib.sha256(without_marks(text(folder), audit, folder).encode()).hexdigest()
    audit["audit_digest"] = audit_digest(audit)
    (folder / "audit.json").write_text(json.dumps(audit, indent=2) + "\n", encoding="utf-8")


def text(folder: Path) -> str:
    return (folder / CARD).read_text(encoding="utf-8")


@pytest.fixture
def corrected(office: Office) -> Office:
    return office.prepared(with_corrected_page)


def with_corrected_page(office: Office) -> None:
    office.released()
    as_an_earlier_version_wrote_it(office.published())
    office.run("store", "pages")


@pytest.mark.parametrize("what", MADE)
def test_pages_that_this_version_would_write_again_stay(office: Office, what: str) -> None:
    office.opened().write_spec(**MADE[what])
    office.released()
    before = {path: path.read_bytes() for path in office.published().iterdir()}
    told = office.run("store", "pages", "--json").json
    assert told == {"anew": [], "same": ["wards/period=all/revision=1"], "left": {}}
    assert {path: path.read_bytes() for path in office.published().iterdir()} == before


def test_a_false_sentence_is_gone_and_nothing_else_changed(office: Office) -> None:
    office.with_release()
    folder, charged = office.published(), office.entries()
    clean = text(folder)
    as_an_earlier_version_wrote_it(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ran = office.run("store", "pages")
    assert ran.code == 0 and "pages of 1 publication rendered anew. The catalogue" in ran.out
    again = office.run("store", "pages").out
    assert "pages of no publication rendered anew; those of 1 were as this version writes them." in again
    changed = {path.name for path in folder.iterdir() if path.read_bytes() != before.get(path.name)}
    assert changed == {CARD, NAME}
    head, _, tail = text(folder).partition("<dt>This page</dt>")
    assert head + tail.partition("</dd>")[2].lstrip("\n") == clean and "by dphist-pipeline" in tail
    assert [entry[1] for entry in office.entries()[len(charged) :]] == ["rendered"]


def test_what_is_published_is_read_once_for_pages_that_change(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.with_release()
    as_an_earlier_version_wrote_it(office.published())
    read = mock.Mock(wraps=published_release.published_estimate)
    monkeypatch.setattr(published_release, "published_estimate", read)
    assert office.run("store", "pages", "--json").json["anew"] and read.call_count == 1


def test_rendered_once_the_same_version_leaves_them(corrected: Office) -> None:
    before = corrected.entries(), text(corrected.published())
    assert corrected.run("store", "pages", "--json").json["anew"] == []
    assert (corrected.entries(), text(corrected.published())) == before


def test_replay_verify_doctor_answers_and_the_copy_accept_them(corrected: Office) -> None:
    assert "spent" not in corrected.released().err
    assert corrected.run("ledger", "verify").code == 0
    found = {check["check"]: check["state"] for check in corrected.run("doctor", "--json").json["checks"]}
    assert found["publications"] == "ok"
    assert corrected.run("answer", "wards").code == 0


def test_doctor_tells_of_pages_by_another_version(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.with_release()

    def told() -> str:
        checks = office.run("doctor", "--json").json["checks"]
        return str(next(check["seen"] for check in checks if check["check"] == "publications"))

    assert "another version" not in told()
    monkeypatch.setattr(publications, "version", lambda name: "99.0")
    assert "pages of 1 are by another version: see dphist store pages" in told()


def test_what_nobody_rendered_is_refused(corrected: Office) -> None:
    for name in (CARD, NAME, "deployment.yaml"):
        path = corrected.published() / name
        rendered = path.read_bytes()
        path.write_bytes(rendered + b" ")
        assert corrected.run("ledger", "verify").code == 1, name
        path.write_bytes(rendered)
    assert corrected.run("ledger", "verify").code == 0


ONE: dict[str, Any] = {"day": "2026-11-27", "version": "0.3", "pages": {CARD: "a" * 64}}
FOREIGN: list[dict[str, Any]] = [
    {"form": 2, "renderings": [ONE]},
    {"form": 1, "renderings": []},
    *({"form": 1, "renderings": [ONE, ONE | {"pages": pages}]} for pages in ({"../a.html": "a" * 64}, {CARD: "a"})),
    {"form": 1, "renderings": [ONE | {"version": "1" * 51}]},
    {"form": 1, "renderings": [ONE | {"day": "today"}]},
]


def test_a_list_of_pages_that_this_program_does_not_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({"form": 1, "renderings": [ONE]}))
    assert [made.pages for made in renderings(tmp_path)] == [ONE["pages"]]
    for content in FOREIGN:
        (tmp_path / NAME).write_text(json.dumps(content))
        with pytest.raises(ValueError, match="not a list of pages"):
            renderings(tmp_path)


def test_pages_that_the_ledger_does_not_know_are_refused(corrected: Office) -> None:
    folder = corrected.published()
    content = json.loads((folder / NAME).read_bytes())
    (folder / CARD).write_text("forged", encoding="utf-8")
    content["renderings"][-1]["pages"][CARD] = digest_of(folder / CARD)
    (folder / NAME).write_text(json.dumps(content), encoding="utf-8")
    read_audit(folder)  # readers without a ledger cannot tell
    ran = corrected.run("ledger", "verify")
    assert ran.code == 1 and "pages.json that the ledger did not record" in " ".join(ran.err.split())


def test_withdrawn_and_rendered_either_way_around(corrected: Office) -> None:
    folder = corrected.published()
    assert corrected.run("withdraw", "wards", "all", "--reason", "wrong").code == 0
    assert PublishedFolder(folder).is_marked_withdrawn()
    as_an_earlier_version_wrote_it(folder)
    assert corrected.run("store", "pages", "--json").json["anew"]
    assert (
        PublishedFolder(folder).is_marked_withdrawn()
        and FALSE not in text(folder)
        and "Withdrawn: do not use" in text(folder)
    )
    assert corrected.run("ledger", "verify").code == 0


def test_pages_of_a_familys_tables_are_rendered_too(office: Office) -> None:
    wards = [{**WARD, "name": f"ward{number}"} for number in range(7)]  # more tables than a card shows
    tables = {"list": [[ward["name"]] for ward in wards]}
    office.opened().write_spec(axes=wards, tables=tables, mechanism="tables")
    office.released()
    folder = office.published()
    table = folder / "tables" / "ward3"
    assert office.run("store", "pages", "--json").json["same"]
    as_an_earlier_version_wrote_it(table)
    assert office.run("store", "pages", "--json").json["anew"]
    assert FALSE not in text(table) and "rendered anew" in text(table) and "rendered anew" in text(folder)
    assert office.run("ledger", "verify").code == 0
    (table / CARD).write_text("forged", encoding="utf-8")
    with pytest.raises(PublishedFilesDamaged):
        read_audit(folder)


STEPS = ("nothing", "the ledger", "the list", "the card")


@pytest.mark.parametrize("after", STEPS)
def test_a_killed_run_leaves_files_that_are_accepted_and_the_next_one_finishes(
    office: Office, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.with_release()
    folder = office.published()
    as_an_earlier_version_wrote_it(folder)

    class Killed(BaseException):
        pass

    def dies(what: Callable[..., None], when: Callable[..., str]) -> Callable[..., None]:
        def call(*given: Any) -> None:
            if after == "nothing":
                raise Killed
            what(*given)
            if when(*given) == after:
                raise Killed

        return call

    replaced = dies(published_release.replace_public, lambda path, *_: "the list" if path.name == NAME else "the card")
    with monkeypatch.context() as patched:
        patched.setattr(published_release, "replace_public", replaced)
        patched.setattr(Ledger, "record_rendered", dies(Ledger.record_rendered, lambda *_: "the ledger"))
        with pytest.raises(Killed):
            office.run("store", "pages")
    assert office.run("ledger", "verify").code == 0 and office.run("answer", "wards").code == 0
    office.run("store", "pages")
    assert FALSE not in text(folder) and office.run("ledger", "verify").code == 0
    assert office.run("store", "pages", "--json").json["anew"] == []


def test_one_damaged_publication_stops_no_other(office: Office) -> None:
    office.with_release()
    office.released("--revise", "--reason", "again")
    as_an_earlier_version_wrote_it(office.published(revision=2))
    (office.published() / "groups.parquet").write_bytes(b"")
    told = office.run("store", "pages", "--json")
    assert told.code == 1 and "groups.parquet" in told.json["left"]["wards/period=all/revision=1"]
    assert FALSE not in text(office.published(revision=2))
