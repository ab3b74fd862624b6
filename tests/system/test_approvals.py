"""What people decide: a release that waits for approval, and a publication that is taken back."""

from __future__ import annotations

import json
from datetime import date

import duckdb
import pytest
from office import RECORDS, Office

from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.releasing.public_folder import PublicFolder

pytestmark = [
    pytest.mark.stand_in("pictures", why="who decides what is published; marks on cards are text"),
    pytest.mark.draws_alike,
]


@pytest.fixture
def office(tmp_path):
    return Office(tmp_path / "office").opened()


@pytest.fixture
def released(tmp_path):
    return Office(tmp_path / "office").with_release()


def run(office, *words):
    ran = office.run(*words, "--store", office.store)
    assert ran.code == 0, ran.err
    return ran


def spent(office):
    return run(office, "ledger", "show", "health", "--json").json[0]["spent"]


def periods(office):
    with duckdb.connect(str(office.store / "public" / "catalog.duckdb"), read_only=True) as connection:
        return connection.execute("SELECT release, revision FROM dph_releases").fetchall()


def test_a_manual_release_is_drawn_and_waits(office):
    office.write_spec(publish="manual")
    waiting = run(office, "release", office.folder / "spec.yaml", "--json").json
    assert "holds 0" in waiting.pop("why")  # of four records
    assert waiting == {"release": "wards", "period": "all", "revision": 1, "awaits_approval": True}
    assert spent(office) == "1/2"
    assert not office.published().exists()
    assert not list(office.store.glob("confidential/**/*.npy"))
    again = run(office, "release", office.folder / "spec.yaml")
    assert "dphist publish SPEC --approved-by NAME" in again.out
    assert spent(office) == "1/2"


def test_an_approval_publishes_without_reading_a_record(office):
    office.write_spec(publish="manual")
    run(office, "release", office.folder / "spec.yaml")
    (office.folder / "data" / "admissions.parquet").unlink()
    done = run(office, "publish", office.folder / "spec.yaml", "--approved-by", "Ada <ada@office>", "--json").json
    assert done["approved"]["by"] == "Ada <ada@office>"
    audit = json.loads((office.published() / "audit.json").read_bytes())
    assert audit["approved"] == done["approved"]
    assert spent(office) == "1/2"
    assert periods(office) == [("wards", 1)]
    run(office, "publish", office.folder / "spec.yaml", "--approved-by", "Ada <ada@office>")
    run(office, "release", office.folder / "spec.yaml")
    run(office, "ledger", "verify")


def test_an_approval_needs_something_to_approve(office):
    early = office.run("publish", office.folder / "spec.yaml", "--approved-by", "Ada", "--store", office.store)
    assert (early.code, "publishes by itself" in early.err) == (1, True)
    office.write_spec(publish="manual")
    early = office.run("publish", office.folder / "spec.yaml", "--approved-by", "Ada", "--store", office.store)
    assert (early.code, "run `dphist release` first" in early.err) == (1, True)
    run(office, "release", office.folder / "spec.yaml")
    nameless = office.run("publish", office.folder / "spec.yaml", "--approved-by", "", "--store", office.store)
    assert nameless.code == 1
    assert not office.published().exists()


@pytest.mark.slow
def test_a_second_approval_in_another_name_is_refused(office):
    office.write_spec(publish="manual")
    run(office, "release", office.folder / "spec.yaml")
    run(office, "publish", office.folder / "spec.yaml", "--approved-by", "Ada")
    other = office.run("publish", office.folder / "spec.yaml", "--approved-by", "Bob", "--store", office.store)
    assert (other.code, "'Ada'" in other.err) == (1, True)


def test_a_withdrawn_publication_leaves_the_catalogue_and_stays_spent(released):
    assert periods(released) == [("wards", 1)]
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    assert periods(released) == []
    assert spent(released) == "1/2"
    audit = json.loads((released.published() / "audit.json").read_bytes())
    assert audit["withdrawn"]["reason"] == "wrong ward codes"
    assert "Withdrawn: do not use" in (released.published() / "card.html").read_text()
    run(released, "ledger", "verify")
    before = released.state()
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    assert {path: content for path, content in released.state().items() if "audit" in path} == {
        path: content for path, content in before.items() if "audit" in path
    }


@pytest.mark.slow
def test_nothing_answers_from_what_was_withdrawn(released):
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    for words in (["release", released.folder / "spec.yaml"], ["answer", "wards"]):
        refused = released.run(*words, "--store", released.store)
        assert refused.code == 1
        assert "withdrawn" in refused.err and "wrong ward codes" in refused.err


@pytest.mark.slow
def test_a_revision_takes_the_place_of_what_was_withdrawn(released):
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    run(released, "release", released.folder / "spec.yaml", "--revise", "--reason", "right ward codes")
    assert spent(released) == "1"
    assert periods(released) == [("wards", 2)]
    assert "records, estimated" in run(released, "answer", "wards").out
    run(released, "ledger", "verify")


@pytest.mark.slow
def test_what_is_damaged_stops_no_other_release_and_is_made_anew(released):
    folder, values = released.published(), (released.published() / "histogram.parquet").read_bytes()
    (folder / "histogram.parquet").write_bytes(values[:100])
    released.write_spec(release="others")
    made = released.release("--store", released.store)
    assert made.code == 0, made.err
    assert "set aside, for its files are damaged: wards/period=all/revision=1" in made.err
    assert released.run("answer", "others", "--store", released.store).code == 0
    doctor = released.run("doctor", "--store", released.store).out
    assert "not what the ledger recorded: wards/period=all/revision=1" in doctor and "makes its files anew" in doctor
    verified = released.run("ledger", "verify", "--store", released.store).out
    assert "not in the public folder now: wards/period=all/revision=1" in verified
    released.write_spec()
    assert released.release("--store", released.store).code == 0
    assert (folder / "histogram.parquet").read_bytes() == values
    assert released.run("answer", "wards", "--store", released.store).code == 0
    assert released.run("ledger", "verify", "--store", released.store).code == 0
    assert "not what the ledger recorded" not in released.run("doctor", "--store", released.store).out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["histogram.parquet", "audit.json", "audit.parquet"])
@pytest.mark.parametrize("left", [100, 0, None])
def test_what_is_damaged_is_withdrawn_and_stops_no_other_release(released, name, left):
    damaged = released.published() / name
    content = damaged.read_bytes()
    damaged.unlink()
    if left is not None:
        damaged.write_bytes(content[:left])
    ran = run(released, "withdraw", "wards", "all", "--reason", "the disk was damaged")
    (aside,) = released.published().parent.iterdir()
    assert aside.name.startswith("damaged_revision=1_") and str(aside) in "".join(ran.out.split())
    assert periods(released) == []
    run(released, "withdraw", "wards", "all", "--reason", "the disk was damaged")
    released.write_spec(release="others")
    released.released("--store", released.store)
    assert periods(released) == [("others", 1)]
    run(released, "ledger", "verify")
    checks = {
        one["check"]: one["state"] for one in released.run("doctor", "--json", "--store", released.store).json["checks"]
    }
    assert checks["publications"] == "ok"
    released.write_spec()
    refused = released.run("release", released.folder / "spec.yaml", "--store", released.store)
    assert (refused.code, "was withdrawn" in refused.err) == (1, True)
    again = ("--revise", "--reason", "the disk was damaged", "--store", released.store)
    assert released.run("release", released.folder / "spec.yaml", *again).code == 0
    assert sorted(periods(released)) == [("others", 1), ("wards", 2)]


@pytest.mark.slow
def test_each_revision_is_withdrawn_for_its_own_reason(released):
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    run(released, "release", released.folder / "spec.yaml", "--revise", "--reason", "right ward codes")
    run(released, "withdraw", "wards", "all", "--reason", "wrong ages")
    assert periods(released) == []
    said = [json.loads((released.published(revision=n) / "audit.json").read_bytes())["withdrawn"] for n in (1, 2)]
    assert [note["reason"] for note in said] == ["wrong ward codes", "wrong ages"]
    run(released, "ledger", "verify")


@pytest.mark.slow
def test_a_withdrawal_takes_back_every_revision_that_stands(released):
    run(released, "release", released.folder / "spec.yaml", "--revise", "--reason", "late records")
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    for revision in (1, 2):
        audit = json.loads((released.published(revision=revision) / "audit.json").read_bytes())
        assert audit["withdrawn"]["reason"] == "wrong ward codes"
    assert periods(released) == []


@pytest.mark.slow
def test_a_withdrawal_that_was_killed_halfway_is_finished_by_the_next_command(released, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(PublishedFolder, "mark_withdrawn", killed)
        assert (
            released.run("withdraw", "wards", "all", "--reason", "wrong ward codes", "--store", released.store).code
            != 0
        )
    torn = released.run("ledger", "verify", "--store", released.store)
    assert (torn.code, "withdrawn" in torn.err) == (1, True)
    released.write_spec(release="others")
    run(released, "release", released.folder / "spec.yaml")
    assert periods(released) == [("others", 1)]
    run(released, "ledger", "verify")


@pytest.mark.slow
def test_a_withdrawal_that_was_killed_halfway_is_finished_by_a_replay_too(released, monkeypatch):
    released.write_spec(release="others")
    run(released, "release", released.folder / "spec.yaml")
    with monkeypatch.context() as broken:
        broken.setattr(PublishedFolder, "mark_withdrawn", killed)
        assert (
            released.run("withdraw", "wards", "all", "--reason", "wrong ward codes", "--store", released.store).code
            != 0
        )
    run(released, "release", released.folder / "spec.yaml")
    run(released, "ledger", "verify")
    assert periods(released) == [("others", 1)]


@pytest.mark.slow
def test_a_withdrawal_that_was_killed_before_the_card_is_finished_too(released, monkeypatch):
    released.write_spec(release="others")
    run(released, "release", released.folder / "spec.yaml")
    with monkeypatch.context() as broken:
        broken.setattr(PublicFolder, "refresh", killed)
        withdrawal = ("withdraw", "wards", "all", "--reason", "wrong <b>ward</b> codes", "--store", released.store)
        assert released.run(*withdrawal).code != 0
    assert PublishedFolder(released.published()).is_marked_withdrawn()
    assert "Withdrawn" not in (released.published() / "card.html").read_text()
    run(released, "release", released.folder / "spec.yaml")
    assert (released.published() / "card.html").read_text().count("wrong &lt;b&gt;ward&lt;/b&gt; codes") == 1


@pytest.mark.slow
def test_what_is_withdrawn_while_it_is_published_never_answers(office, monkeypatch):
    from dphist_pipeline.releasing import publisher

    move = publisher.move_into_place

    def withdrawn_first(staging, published):
        ran = office.run("withdraw", "wards", "all", "--reason", "wrong ward codes", "--store", office.store)
        assert ran.code == 0, ran.err
        return move(staging, published)

    monkeypatch.setattr(publisher, "move_into_place", withdrawn_first)
    refused = office.run("release", office.folder / "spec.yaml", "--store", office.store)
    assert (refused.code, "was withdrawn" in refused.err) == (1, True)
    assert office.run("answer", "wards", "--store", office.store).code == 1
    run(office, "ledger", "verify")


WEEKS = ["2024-01-01", "2024-01-08"]


@pytest.fixture
def waiting(tmp_path):
    """An office with two weeks that wait."""
    return Office(tmp_path / "office").prepared(with_two_weeks)


def with_two_weeks(office):
    office.write_records({**RECORDS, "admitted_on": [date.fromisoformat(WEEKS[0])] * 4})
    office.write_spec(publish="manual", period="week", period_column="admitted_on", period_format="iso")
    for week in WEEKS:
        run(office, "release", office.folder / "spec.yaml", "--period", week)


def approve(office, *words):
    return office.run("publish", office.folder / "spec.yaml", "--approved-by", "Ada", *words, "--store", office.store)


@pytest.mark.slow
def test_an_approval_that_may_mean_several_lists_them(waiting):
    before = waiting.entries()
    unclear = approve(waiting)
    assert unclear.code == 1
    assert "that wait: --period 2024-01-01 --revision 1; --period 2024-01-08 --revision 1." in unclear.err
    assert waiting.entries() == before
    assert approve(waiting, "--period", WEEKS[1], "--revision", "1").code == 0
    assert periods(waiting) == [("wards", 1)] and waiting.published(period=WEEKS[1]).exists()


@pytest.mark.slow
def test_an_approval_of_nothing_named_is_of_the_only_one_that_waits(waiting):
    run(waiting, "release", waiting.folder / "spec.yaml")
    assert approve(waiting, "--period", WEEKS[0]).code == 0
    unclear = approve(waiting)
    assert (unclear.code, "that wait: --period 2024-01-08 --revision 1; --period 20" in unclear.err) == (1, True)
    assert approve(waiting, "--period", WEEKS[1]).code == 0
    latest = approve(waiting, "--json")
    assert latest.code == 0 and latest.json["period"] > WEEKS[1]
    run(waiting, "ledger", "verify")


@pytest.mark.slow
def test_an_earlier_period_that_waits_alone_needs_no_name(waiting):
    said = approve(waiting, "--period", WEEKS[1])
    assert (said.code, "nothing now" in said.out, said.err.count("releasing by")) == (0, True, 1)
    assert approve(waiting, "--json").json["period"] == WEEKS[0]


@pytest.mark.slow
def test_each_of_two_revisions_is_approved_by_its_number(office):
    office.write_spec(publish="manual")
    run(office, "release", office.folder / "spec.yaml")
    revised = run(office, "release", office.folder / "spec.yaml", "--revise", "--reason", "right ward codes")
    assert "dphist publish SPEC --revision 2 --approved-by NAME" in revised.out
    unclear = approve(office)
    assert (unclear.code, "--period all --revision 1; --period all --revision 2" in unclear.err) == (1, True)
    nothing = approve(office, "--revision", "3")
    assert (nothing.code, "there is no revision 3" in nothing.err) == (1, True)
    assert approve(office, "--revision", "2").code == 0
    older = approve(office)
    assert (older.code, "that wait: --period all --revision 1." in older.err) == (1, True), "published unasked"
    assert not office.published().exists()
    assert approve(office, "--revision", "1", "--json").json["revision"] == 1
    assert json.loads((office.published() / "audit.json").read_bytes())["revision"] == 1
    assert (approve(office).code, spent(office)) == (0, "1")
    run(office, "ledger", "verify")


@pytest.mark.slow
def test_what_was_charged_under_manual_waits_whatever_its_spec_says_later(office):
    office.write_spec(publish="manual")
    run(office, "release", office.folder / "spec.yaml")
    office.write_spec(publish="automatic")
    still = run(office, "release", office.folder / "spec.yaml", "--json").json
    assert still["awaits_approval"] and not office.published().exists()
    assert "it was charged under `publish: manual`" in run(office, "release", office.folder / "spec.yaml").out
    assert approve(office, "--json").json["approved"]["by"] == "Ada"
    files = office.published()
    published = {path.name: path.read_bytes() for path in files.iterdir()}
    files.rename(office.folder / "moved-away")
    run(office, "release", office.folder / "spec.yaml")
    assert {path.name: path.read_bytes() for path in files.iterdir()} == published
    run(office, "ledger", "verify")


def test_what_was_charged_under_manual_and_not_drawn_waits_as_well(office, monkeypatch):
    office.write_spec(publish="manual")
    with monkeypatch.context() as broken:
        broken.setattr(PrivateCounts, "noisy_cells", killed)
        assert office.run("release", office.folder / "spec.yaml", "--store", office.store).code != 0
    office.write_spec(publish="automatic")
    assert run(office, "release", office.folder / "spec.yaml", "--json").json["awaits_approval"]
    assert not office.published().exists()


@pytest.mark.slow
def test_what_was_published_by_itself_is_made_anew_under_manual_without_an_approval(released):
    released.published().rename(released.folder / "moved-away")
    released.write_spec(publish="manual")
    run(released, "release", released.folder / "spec.yaml")
    assert released.published().exists()
    run(released, "ledger", "verify")


def killed(*_):
    raise KeyboardInterrupt


def test_an_approval_after_a_crash_reads_no_record(office, monkeypatch):
    office.write_spec(publish="manual")
    with monkeypatch.context() as broken:
        broken.setattr(PrivateCounts, "noisy_cells", killed)
        assert office.run("release", office.folder / "spec.yaml", "--store", office.store).code != 0
    assert spent(office) == "1/2"
    (office.folder / "data" / "admissions.parquet").rename(office.folder / "away")
    early = office.run("publish", office.folder / "spec.yaml", "--approved-by", "Ada", "--store", office.store)
    assert (early.code, "or not all of them" in early.err) == (1, True)


@pytest.mark.slow
def test_what_was_published_by_itself_is_not_approved_afterwards(released):
    released.write_spec(publish="manual")
    late = released.run("publish", released.folder / "spec.yaml", "--approved-by", "Ada", "--store", released.store)
    assert (late.code, "was published before" in late.err) == (1, True)


@pytest.mark.slow
def test_files_made_anew_from_the_journal_stay_withdrawn(released):
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    released.published().rename(released.folder / "moved-away")
    refused = released.run("release", released.folder / "spec.yaml", "--store", released.store)
    assert (refused.code, "was withdrawn" in refused.err) == (1, True)
    assert not released.published().exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["wards", "2026-01-05", "--reason", "x"], "2026-01-05"),
        (["nowhere", "all", "--reason", "x"], "nowhere"),
        (["wards", "all", "--reason", ""], "reason"),
    ],
)
def test_what_cannot_be_withdrawn_is_refused_with_nothing_changed(released, words, says):
    before = released.entries()
    refused = released.run("withdraw", *words, "--store", released.store)
    assert (refused.code, says in refused.err) == (1, True), refused.err
    assert released.entries() == before
    assert periods(released) == [("wards", 1)]


@pytest.mark.slow
def test_another_reason_is_refused(released):
    run(released, "withdraw", "wards", "all", "--reason", "wrong ward codes")
    refused = released.run("withdraw", "wards", "all", "--reason", "never mind", "--store", released.store)
    assert (refused.code, "wrong ward codes" in refused.err) == (1, True)
