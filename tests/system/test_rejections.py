"""What people decide: that a release which waits will not be published."""

from __future__ import annotations

import json

import pytest
from office import Office, Ran, left_by_older_version

from dphist_pipeline.confidential import journal
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.releasing import _approvals as approvals
from dphist_pipeline.releasing import publisher
from dphist_pipeline.releasing.store import FOLDER

pytestmark = pytest.mark.draws_alike

REJECT = ("reject", "wards", "all", "--reason", "wrong ward codes")


@pytest.fixture
def office(tmp_path) -> Office:
    """An office with a release that waits."""
    made = Office(tmp_path / "office").prepared(with_one_that_waits)
    assert drawn(made)
    return made


def with_one_that_waits(office: Office) -> None:
    office.write_spec(publish="manual")
    run(office, "release", office.folder / "spec.yaml")


def run(office: Office, *words) -> Ran:
    ran = office.run(*words, "--store", office.store)
    assert ran.code == 0, ran.err
    return ran


def refusal(office: Office, *words) -> str:
    ran = office.run(*words, "--store", office.store)
    assert ran.code == 1
    return ran.err


def approve(office: Office) -> tuple:
    return "publish", office.folder / "spec.yaml", "--approved-by", "Ada"


def drawn(office: Office) -> list:
    """Files in the confidential store: what waits, or was left over."""
    files = [path for path in office.store.glob("confidential/**/*") if path.is_file() and path.name != FOLDER]
    return [path for path in files if "rejected" not in path.relative_to(office.store).parts]


def spent(office: Office) -> str:
    return run(office, "ledger", "show", "health", "--json").json[0]["spent"]


@pytest.mark.slow
def test_what_is_rejected_waits_no_more_and_stays_spent(office):
    done = run(office, *REJECT, "--json").json
    assert done == {"release": "wards", "period": "all", "revision": 1, "reason": "wrong ward codes"}
    assert not drawn(office) and not office.published().exists()
    assert spent(office) == "1/2"
    _, kind, _, *key, body = office.entries()[-1][:7]
    assert (kind, key, json.loads(body)["text"]) == ("rejected", ["wards", "all", 1], "wrong ward codes")
    for words in (approve(office), (*approve(office), "--revision", "1"), ("release", office.folder / "spec.yaml")):
        said = refusal(office, *words)
        assert "was rejected on" in said and "wrong ward codes" in said and "--revise --reason" in said
    run(office, "ledger", "verify")


def test_a_rejection_is_said_once(office):
    run(office, *REJECT)
    before = office.entries()
    run(office, *REJECT)
    assert "was rejected already" in refusal(office, "reject", "wards", "all", "--reason", "never mind")
    assert office.entries() == before


def test_a_rejection_needs_no_spec(office):
    (office.folder / "spec.yaml").unlink()
    run(office, *REJECT)
    run(office, "ledger", "verify")


@pytest.mark.slow
def test_a_revision_takes_the_place_of_what_was_rejected(office):
    run(office, *REJECT)
    revise = ("release", office.folder / "spec.yaml", "--revise", "--reason", "right ward codes")
    assert run(office, *revise, "--json").json["revision"] == 2
    assert run(office, *approve(office), "--json").json["revision"] == 2
    assert spent(office) == "1"
    assert "records, estimated" in run(office, "answer", "wards").out
    run(office, "ledger", "verify")


@pytest.mark.slow
def test_of_two_that_wait_one_is_rejected_by_its_number(office):
    run(office, "release", office.folder / "spec.yaml", "--revise", "--reason", "right ward codes")
    assert "that wait: --revision 1; --revision 2." in refusal(office, *REJECT)
    run(office, *REJECT, "--revision", "1")
    assert len(drawn(office)) == 1
    assert run(office, *approve(office), "--json").json["revision"] == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["wards", "2026-01-05", "--reason", "x"], "nothing was charged"),
        (["nowhere", "all", "--reason", "x"], "nothing was charged"),
        (["wards", "all", "--reason", "x", "--revision", "2"], "nothing was charged"),
        (["wards", "all", "--reason", " "], "needs a reason"),
    ],
)
def test_what_cannot_be_rejected_is_refused_with_nothing_changed(office, words, says):
    before = office.entries(), drawn(office)
    assert says in refusal(office, "reject", *words)
    assert (office.entries(), drawn(office)) == before


@pytest.mark.slow
def test_what_is_published_is_withdrawn_and_what_waits_is_rejected(office):
    assert "`dphist reject`" in refusal(office, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    run(office, *approve(office))
    assert "dphist withdraw wards all --reason TEXT" in refusal(office, *REJECT)
    assert drawn(office) and office.published().exists()


@pytest.mark.slow
def test_a_rejection_killed_before_it_deleted_is_finished_by_the_next_command(office, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(approvals, "finish_rejections", killed)
        assert office.run(*REJECT, "--store", office.store).code != 0
    assert drawn(office)
    run(office, "ledger", "verify")
    office.write_spec(release="others")
    run(office, "release", office.folder / "spec.yaml")
    assert [path.parent.parent.parent.name for path in drawn(office)] == ["others"]


def test_what_a_killed_approval_staged_goes_with_the_rest(office):
    run_of_a_dead_process = office.store / "confidential" / "runs" / "wards" / "all" / "1" / "0"
    (run_of_a_dead_process / "published").mkdir(parents=True)
    (run_of_a_dead_process / "published" / "histogram.parquet").touch()
    run_of_a_dead_process.with_name("0.lock").touch()
    run(office, *REJECT)
    assert not drawn(office)


@pytest.mark.slow
def test_what_is_rejected_while_it_is_published_is_not_published(office, monkeypatch):
    write = publisher.write_release

    def rejected_first(*given):
        run(office, *REJECT)
        return write(*given)

    monkeypatch.setattr(publisher, "write_release", rejected_first)
    assert "was rejected on" in refusal(office, *approve(office))
    assert not drawn(office) and not office.published().exists()
    run(office, "ledger", "verify")


@pytest.mark.slow
def test_what_is_published_while_it_is_rejected_stays_published(office, monkeypatch):
    note = approvals.Ledger.note

    def published_first(ledger, charge, kind, text):
        if kind == "rejected":
            run(office, *approve(office))
        return note(ledger, charge, kind, text)

    monkeypatch.setattr(approvals.Ledger, "note", published_first)
    assert "was published already" in refusal(office, *REJECT)
    assert office.published().exists() and drawn(office)
    run(office, "ledger", "verify")


@pytest.mark.parametrize("publish", ["manual", "automatic"])
def test_what_is_rejected_while_a_measurement_draws_leaves_nothing_that_was_drawn(tmp_path, monkeypatch, publish):
    office, noisy_cells = Office(tmp_path / "office").opened(), PrivateCounts.noisy_cells

    def rejected_first(counts, budget):
        run(office, *REJECT)
        return noisy_cells(counts, budget)

    office.write_spec(publish=publish)
    monkeypatch.setattr(PrivateCounts, "noisy_cells", rejected_first)
    assert "was rejected on" in refusal(office, "release", office.folder / "spec.yaml")
    assert not drawn(office) and not office.published().exists()
    assert spent(office) == "1/2"


def test_what_is_rejected_between_a_draw_and_its_reading_is_told_as_rejected(tmp_path, monkeypatch):
    office, sync = Office(tmp_path / "office").opened(), journal.sync_folder

    def rejected_first(folder):
        if folder.exists():
            run(office, *REJECT)
        sync(folder)

    office.write_spec(publish="manual")
    monkeypatch.setattr(journal, "sync_folder", rejected_first)
    assert "was rejected on" in refusal(office, "release", office.folder / "spec.yaml")
    assert not drawn(office) and not office.published().exists()


def test_a_ledger_put_back_to_before_a_rejection_is_noticed_and_draws_nothing(office):
    before = (office.store / "ledger.sqlite").read_bytes()
    run(office, *REJECT)
    (office.store / "ledger.sqlite").write_bytes(before)
    for words in (("release", office.folder / "spec.yaml"), approve(office), ("ledger", "verify")):
        assert " as confidential/rejected/wards/all/1.json states it" in refusal(office, *words)
    assert not drawn(office)


@pytest.mark.slow
def test_a_ledger_put_back_to_before_a_rejection_is_adopted_and_the_store_opens(office):
    before = (office.store / "ledger.sqlite").read_bytes()
    run(office, *REJECT)
    (office.store / "ledger.sqlite").write_bytes(before)
    run(office, "store", "adopt", "--reason", "the ledger was put back")
    run(office, "ledger", "verify")
    assert "has drawn the answer to 'counts' already" in refusal(office, "release", office.folder / "spec.yaml")
    assert not drawn(office) and spent(office) == "1/2"


def test_a_damaged_witness_of_a_rejection_is_refused(office):
    run(office, *REJECT)
    (office.store / "confidential/rejected/wards/all/1.json").write_text("{")
    assert "has a damaged confidential/rejected/wards/all/1.json" in refusal(office, "ledger", "verify")


def test_a_rejection_that_was_cut_short_is_finished_by_the_next_command(office, monkeypatch):
    # As after a kill: the ledger says so, and what was drawn is still there.
    with monkeypatch.context() as patch:
        patch.setattr(approvals, "finish_rejections", lambda store, ledger: None)
        run(office, *REJECT)
    assert drawn(office)
    assert "was rejected on" in refusal(office, "release", office.folder / "spec.yaml")
    assert not drawn(office) and (office.store / "confidential/rejected/wards/all/1.json").is_file()


@pytest.mark.slow
def test_what_is_published_is_not_rejected_though_the_ledger_forgot_that(office):
    charged = (office.store / "ledger.sqlite").read_bytes()
    run(office, *approve(office))
    (office.store / "ledger.sqlite").write_bytes(charged)
    assert "put back from a backup" in refusal(office, "ledger", "verify")
    assert "was published already" in refusal(office, *REJECT)
    assert drawn(office) and office.published().exists()
    run(office, "store", "adopt", "--reason", "the ledger was put back")
    run(office, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    run(office, "ledger", "verify")


@pytest.mark.slow
def test_a_rejected_revision_does_not_stand_in_the_way_of_what_was_published(office):
    run(office, *approve(office))
    shown = {path: path.read_bytes() for path in office.store.glob("public/wards/**/*.parquet")}
    run(office, "release", office.folder / "spec.yaml", "--revise", "--reason", "late records")
    run(office, *REJECT, "--revision", "2")
    assert "Already published" in run(office, "release", office.folder / "spec.yaml").out
    assert {path: path.read_bytes() for path in office.store.glob("public/wards/**/*.parquet")} == shown
    again = refusal(office, "release", office.folder / "spec.yaml", "--revise", "--reason", "late records")
    assert "was rejected on" in again and "for a reason that was not given before" in again


def test_a_cube_that_an_older_version_kept_goes_with_the_rejection(office):
    left_by_older_version(office.store, "wards", "all", 1, "somebody's run")
    run(office, *REJECT)
    assert not drawn(office)
