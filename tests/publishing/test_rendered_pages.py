"""Pages are made from what is sealed: `dphist store pages` makes them again, and `dphist doctor` compares them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from carded import Read
from office import AGE, WARD, Office

from dphist_pipeline.health import _publications as publications
from dphist_pipeline.publishing import _card, published_pages
from dphist_pipeline.publishing.published_files import AUDIT, CARD, PublishedFolder, audit_digest, digest_of, read_audit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.draws_alike,
]

FALSE = "<p>A sentence that a later version corrected.</p></main>"
PLACE = "wards/period=all/revision=1"
WEEKS = [(f"2026-03-{day:02d}", f"2026-03-{day + 7:02d}") for day in (2, 9)]
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


def text(folder: Path) -> str:
    return (folder / CARD).read_text(encoding="utf-8")


def forge(folder: Path) -> None:
    """Puts a false sentence on the card, and seals the audit anew, as whoever may write there can."""
    (folder / CARD).write_text(text(folder).replace("</main>", FALSE), encoding="utf-8")
    seal(folder)


def seal(folder: Path, of_form_1: bool = False, **changes: Any) -> None:
    audit = {**json.loads((folder / AUDIT).read_bytes()), **changes}
    if of_form_1:
        audit["files"] |= {name: digest_of(folder / name) for name in (CARD, "deployment.yaml")}
    audit["audit_digest"] = audit_digest(audit)
    (folder / AUDIT).write_text(json.dumps(audit, indent=2) + "\n", encoding="utf-8")


def told(office: Office) -> tuple[str, str]:
    """What `dphist doctor` finds of pages."""
    checks = office.run("doctor", "--json").json["checks"]
    return next((one["state"], one["seen"]) for one in checks if one["check"] == "pages")


@pytest.mark.parametrize("what", MADE)
def test_pages_are_made_again_to_the_same_bytes(office: Office, what: str) -> None:
    office.opened().write_spec(**MADE[what])
    office.released()
    before = {path: path.read_bytes() for path in office.published().iterdir()}
    assert told(office) == ("ok", "those of the newest 1 are what this version makes of the published files")
    assert office.run("store", "pages", "--json").json == {"anew": [], "same": [PLACE], "left": {}}
    assert {path: path.read_bytes() for path in office.published().iterdir()} == before


def test_a_forged_card_is_named_by_doctor_and_mended_by_store_pages(office: Office) -> None:
    office.with_release()
    folder, clean, charged = office.published(), text(office.published()), office.entries()
    forge(folder)
    assert office.run("ledger", "verify").code == 0  # which reads numbers
    state, seen = told(office)
    assert state == "warning" and f"{PLACE}/{CARD}" in seen
    ran = office.run("store", "pages")
    assert ran.code == 0 and "pages of 1 publication rendered anew. The catalogue" in ran.out
    assert text(folder) == clean and told(office)[0] == "ok" and office.entries() == charged
    again = office.run("store", "pages").out
    assert "pages of no publication rendered anew; those of 1 were as this version writes them." in again


@pytest.mark.parametrize("name", [CARD, "deployment.yaml"])
def test_a_missing_page_or_a_link_in_its_place_is_replaced(office: Office, name: str, tmp_path: Path) -> None:
    office.with_release()
    page, elsewhere = office.published() / name, tmp_path / "elsewhere"
    content = page.read_bytes()
    elsewhere.write_bytes(content)
    for plant in (lambda: None, lambda: page.symlink_to(elsewhere), lambda: os.mkfifo(page)):
        page.unlink()
        plant()
        assert name in told(office)[1]
        assert office.run("store", "pages", "--json").json["anew"] == [PLACE]
        assert page.read_bytes() == content and not page.is_symlink() and stat.S_IMODE(page.stat().st_mode) == 0o644
    assert elsewhere.read_bytes() == content


def test_a_family_whose_folder_of_a_table_is_a_link_is_left(office: Office, tmp_path: Path) -> None:
    family(office)
    table = office.published() / "tables" / "ward3"
    table.rename(tmp_path / "elsewhere")
    table.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere" / CARD).read_text()
    ran = office.run("store", "pages", "--json")
    assert "is a link" in ran.json["left"][PLACE] and (tmp_path / "elsewhere" / CARD).read_text() == before


def test_what_is_published_is_read_once_for_pages_that_change(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.with_release()
    forge(office.published())
    read = mock.Mock(wraps=published_pages.published_estimate)
    monkeypatch.setattr(published_pages, "published_estimate", read)
    assert office.run("store", "pages", "--json").json["anew"] and read.call_count == 1


def test_pages_of_another_version_say_which_version_made_them_and_no_day(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.with_release()
    folder, clean = office.published(), text(office.published())
    for module in (publications, _card):
        monkeypatch.setattr(module, "version", lambda name: "99.0")
    assert told(office)[1].endswith("; 1 are by another version: see dphist store pages")
    assert office.run("store", "pages", "--json").json["anew"] == [PLACE]
    head, _, tail = text(folder).partition("<dt>This page</dt>")
    assert head + tail.partition("</dd>")[2].lstrip("\n") == clean
    assert "rendered anew by dphist-pipeline 99.0, from the published files" in tail
    assert told(office) == ("ok", "those of the newest 1 are what this version makes of the published files")
    assert office.run("store", "pages", "--json").json["same"] == [PLACE]


def test_a_card_of_form_1_that_cannot_be_made_again_is_compared_with_its_digest(office: Office) -> None:
    office.with_release()
    folder = office.published()
    (folder / CARD).write_text(text(folder).replace("</main>", FALSE), encoding="utf-8")
    seal(folder, of_form_1=True, versions={"dphist-pipeline": "0.1.0"}, mechanism=None)
    audit = json.loads((folder / AUDIT).read_bytes())
    del audit["mechanism"], audit["charges"]
    (folder / AUDIT).write_text(json.dumps(audit))
    seal(folder)
    assert told(office)[0] == "ok"
    assert office.run("withdraw", "wards", "all", "--reason", "wrong").code == 0
    assert "Withdrawn: do not use" in text(folder) and told(office)[0] == "ok"
    left = office.run("store", "pages", "--json").json["left"][PLACE]
    assert "does not say what pages need" in left and FALSE in text(folder)
    (folder / CARD).write_text(text(folder).replace("</main>", FALSE), encoding="utf-8")
    assert f"{PLACE}/{CARD}" in told(office)[1]


def test_a_notice_that_was_removed_is_named_and_set_again(office: Office) -> None:
    office.with_release()
    clean = text(office.published())
    assert office.run("withdraw", "wards", "all", "--reason", "wrong").code == 0
    noticed = text(office.published())
    (office.published() / CARD).write_text(clean, encoding="utf-8")
    assert f"{PLACE}/{CARD}" in told(office)[1]
    assert office.run("store", "pages", "--json").json["anew"] == [PLACE]
    assert text(office.published()) == noticed and PublishedFolder(office.published()).is_marked_withdrawn()


def test_a_forged_card_that_is_withdrawn_is_mended_with_its_notice(office: Office) -> None:
    office.with_release()
    assert office.run("withdraw", "wards", "all", "--reason", "wrong").code == 0
    forge(office.published())
    assert office.run("store", "pages", "--json").json["anew"]
    assert FALSE not in text(office.published()) and "Withdrawn: do not use" in text(office.published())
    assert office.run("ledger", "verify").code == 0


def family(office: Office) -> None:
    """Releases more tables than a card shows."""
    wards = [{**WARD, "name": f"ward{number}"} for number in range(7)]
    office.opened().write_spec(axes=wards, tables={"list": [[ward["name"]] for ward in wards]}, mechanism="tables")
    office.released()


def test_pages_of_a_familys_tables_are_compared_and_mended_too(office: Office) -> None:
    family(office)
    folder = office.published()
    table = folder / "tables" / "ward3"
    assert office.run("store", "pages", "--json").json["same"] and told(office)[0] == "ok"
    clean = text(table)
    (table / CARD).write_text("forged", encoding="utf-8")
    assert f"{PLACE}/tables/ward3/{CARD}" in told(office)[1] and read_audit(folder)
    assert office.run("store", "pages", "--json").json["anew"]
    assert text(table) == clean and told(office)[0] == "ok"
    assert office.run("withdraw", "wards", "all", "--reason", "wrong").code == 0
    assert "Withdrawn: do not use" in text(table) and told(office)[0] == "ok"


def test_a_run_that_was_killed_between_two_pages_is_finished_by_the_next(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dphist_pipeline.releasing import public_folder

    office.with_release()
    folder, pages = office.published(), (CARD, "deployment.yaml")
    clean = [(folder / name).read_bytes() for name in pages]
    for name in pages:
        (folder / name).write_text("forged")

    class Killed(BaseException):
        pass

    def dies(*given: Any) -> None:
        replace(*given)
        raise Killed

    replace = public_folder.replace_public
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(public_folder, "replace_public", dies)
        office.run("store", "pages")
    assert office.run("ledger", "verify").code == 0 and office.run("answer", "wards").code == 0
    assert office.run("store", "pages", "--json").json["anew"] == [PLACE]
    assert [(folder / name).read_bytes() for name in pages] == clean


def test_one_damaged_publication_stops_no_other(office: Office) -> None:
    office.with_release()
    office.released("--revise", "--reason", "again")
    forge(office.published(revision=2))
    (office.published() / "groups.parquet").write_bytes(b"")
    ran = office.run("store", "pages", "--json")
    assert ran.code == 1 and "groups.parquet" in ran.json["left"][PLACE]
    assert FALSE not in text(office.published(revision=2))


def test_a_card_compares_with_the_revision_before_it_that_stands(office: Office) -> None:
    weeks = ("2026-01-05", "2026-01-12")
    records = {"patient": [f"p{row}" for row in range(4_000)], "age": [30.0] * 4_000, "ward": ["surgery"] * 4_000}
    office.opened().write_records(records | {"day": [weeks[row % 2] for row in range(4_000)]})
    office.write_spec(period="week", period_column="day", period_format="iso", release_delay_days=0)
    for week in weeks:
        office.released("--period", week)
    assert "in its revision 1" in " ".join(Read(text(office.published(period=weeks[1]))).text.split())
    office.released("--period", weeks[0], "--revise", "--reason", "late records")
    said = " ".join(Read(text(office.published(period=weeks[1]))).text.split())
    assert "in its revision 2" in said and "in its revision 1" not in said
    assert told(office)[0] == "ok"
    assert f"wards/period={weeks[1]}/revision=1" in office.run("store", "pages", "--json").json["same"]
    assert office.run("withdraw", "wards", weeks[0], "--reason", "wrong").code == 0
    assert "Period before" not in text(office.published(period=weeks[1]))
