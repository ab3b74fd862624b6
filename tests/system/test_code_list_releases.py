"""A release over a code list: what changes when the list does."""

from __future__ import annotations

import pytest
from office import Office

pytestmark = pytest.mark.draws_alike

LIST = "code,state\n01,Alabama\n02,Alaska\n"
COUNTY = {
    "column": "ward",
    "values_from": "codes/codes.csv",
    "values_column": "code",
    "levels": ["state"],
    "other": True,
}


@pytest.fixture
def office(tmp_path, monkeypatch):
    opened = Office(tmp_path / "office").opened()
    monkeypatch.chdir(opened.folder)
    (opened.folder / "codes").mkdir()
    (opened.folder / "codes" / "codes.csv").write_text(LIST)
    assert opened.run("ledger", "allow", "--code-lists", "codes").code == 0
    opened.write_spec(axes=[COUNTY])
    opened.released()
    return opened


@pytest.mark.slow
def test_a_code_list_that_changes_after_a_release_asks_for_a_revision(office):
    (office.folder / "codes" / "codes.csv").write_text(LIST.replace("Alaska", "Hawaii"))
    before = office.entries()
    refused = office.release()
    assert (refused.code, "--revise" in refused.err) == (1, True)
    assert office.entries() == before
    assert office.released("--revise", "--reason", "states were renamed").code == 0


def test_a_code_list_that_was_only_saved_anew_replays(office):
    (office.folder / "codes" / "codes.csv").write_bytes(b"\xef\xbb\xbf" + LIST.replace("\n", "\r\n").encode())
    assert office.released("--json").json["replayed"] is True


@pytest.mark.slow
def test_a_level_is_asked_on_the_command_line(office):
    ran = office.run("answer", "wards", "--where", "state = 'Alaska'", "--store", office.store, "--json")
    assert (ran.code, ran.json["cells"]) == (0, 1)
