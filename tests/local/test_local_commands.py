"""`dphist local encode` and `publish`: from a file of values to SQL, by commands that can be run again."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from local_office import PEOPLE, LocalOffice
from office import Office, Ran

from dphist_pipeline.answering.published import latest_revision
from dphist_pipeline.local.contributor import Contributor
from dphist_pipeline.local.partition import question_of

pytestmark = pytest.mark.stand_in("pictures", why="files and answers; pictures are tried in publishing/")
USAGE = 2


@pytest.fixture
def local(office: Office) -> LocalOffice:
    made = LocalOffice(office)
    made.declared()
    (office.folder / "people.csv").write_text("".join(PEOPLE))
    return made


def encode(
    local: LocalOffice, *more: str | Path, values: str = "people.csv", output: str = "a.parquet", **named: str
) -> Ran:
    options = {"column": "age", "contributor": "who", "record": "records", **named}
    words = [word for name, text in options.items() for word in (f"--{name}", text)]
    return local.office.run("local", "encode", "ages.yaml", values, *words, "--output", f"reports/{output}", *more)


def encoded(local: LocalOffice, *more: str | Path, **named: str) -> Ran:
    ran = encode(local, *more, **named)
    assert ran.code == 0, ran.err
    return ran


def asked(local: LocalOffice, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{local.office.store / 'public' / 'catalog.duckdb'}' AS c (READ_ONLY); USE c")
        return connection.execute(query).fetchall()


@pytest.mark.slow
def test_values_become_reports_then_releases_then_answers(local: LocalOffice) -> None:
    ran = encoded(local, "--limit", "5")
    assert "300 contributors answer with 300 reports, 1 bytes each" in ran.out and "spent epsilon 2 on" in ran.out
    first = local.published("reports/a.parquet")
    assert "300 reports counted; refused: none" in first.out and "dphist answer ages_city" in first.out
    before = local.files()
    again = local.published("reports/a.parquet")
    assert again.out.count("already published") == 2 and local.files() == before
    answers = [local.office.run("answer", name, "--json").json for name in ("ages_city", "ages_state")]
    sums = asked(local, "SELECT sum(unbiased_estimate) FROM ages_city UNION ALL SELECT sum(estimate) FROM ages_state")
    assert sums[0][0] == pytest.approx(sums[1][0])
    for told, (total,) in zip(answers, sums, strict=True):
        assert told["estimate"] == pytest.approx(total) and told["ci_lower"] <= total <= told["ci_upper"]
    young = local.office.run("answer", "ages_city", "--where", "age in [0, 50)", "--json").json
    assert young["estimate"] == pytest.approx(
        asked(local, "SELECT sum(estimate) FROM ages_city WHERE age_upper <= 50")[0][0]
    )
    models = asked(local, "SELECT DISTINCT release FROM dph_releases ORDER BY release")
    assert models == [("ages_city",), ("ages_state",)]


@pytest.mark.slow
def test_json_is_what_scripts_rely_on(local: LocalOffice) -> None:
    ran = encoded(local, "--limit", "5", "--json")
    asked_for = question_of(local.declared()).digest
    path = str(Path("reports/a.parquet"))
    assert (ran.err, ran.json) == (
        "",
        {"question": asked_for, "reports": 300, "bytes_per_report": 1, "epsilon": "2", "contributors": 300}
        | {"exhausted": 0, "path": path},
    )
    for replayed in (False, True):
        made = local.published(path, "--json")
        assert made.err == "" and set(made.json) == {"accepted", "refused", "epsilon", "releases"}
        assert (made.json["accepted"], set(made.json["refused"].values()), made.json["epsilon"]) == (300, {0}, "2")
        city = str(local.office.published("ages_city"))
        assert made.json["releases"][0] == (
            {"release": "ages_city", "period": "all", "revision": 1, "replayed": replayed, "path": city}
        )


@pytest.mark.slow
def test_asked_again_contributors_send_the_same_file(local: LocalOffice) -> None:
    encoded(local, "--limit", "5")
    encoded(local, output="b.parquet")
    files = [local.folder / "reports" / name for name in ("a.parquet", "b.parquet")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "300 reports counted; refused: 300 duplicate" in local.published(*files).out


def test_the_question_alone_asks_what_the_spec_asks(local: LocalOffice) -> None:
    question = question_of(local.declared())
    (local.folder / "question.json").write_text(question.to_json())
    words = ["people.csv", "--column", "age", "--contributor", "who", "--record", "records", "--limit", "5"]
    ran = local.office.run("local", "encode", "question.json", *words, "--output", "reports/b.parquet", "--json")
    assert ran.json["question"] == question.digest
    for content in (b"", b"{}", b"\xff"):
        (local.folder / "bad.json").write_bytes(content)
        ran = local.office.run("local", "encode", "bad.json", *words, "--output", "reports/c.parquet")
        assert ran.code == 1 and "this is not a question of a collection" in ran.err


@pytest.mark.slow
def test_reports_are_found_where_the_spec_says(local: LocalOffice) -> None:
    assert "nothing says where the reports are" in local.publish().err
    local.declared(reports="reports/**/*.parquet")
    ran = local.publish()
    assert ran.code == 1 and "no file matches `reports: reports/**/*.parquet`" in ran.err
    encoded(local, "--limit", "5")
    (local.folder / "reports" / "folder.parquet").mkdir()
    assert "300 reports counted" in local.published().out
    assert "are a folder" in local.publish("reports").err and "are not there" in local.publish("gone.parquet").err


@pytest.mark.slow
def test_lines_come_through_a_pipe_and_beside_files(local: LocalOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    question = question_of(local.declared())
    people = [Contributor.create(local.folder / f"{number}.json", question.epsilon) for number in range(3)]
    lines = [report.line(question) for person in people for report in person.answer(question, [5.0])]
    encoded(local, "--limit", "5")
    foreign = ["0" * 16 + lines[0][16:]] * 2
    content = "\r\n".join([*lines, "no report", *foreign, lines[0], ""]).encode()
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        ran = local.published("-", "reports/a.parquet", "--json")
        refused = {"unreadable": 1, "other question": 2, "wrong length": 0, "malformed": 0, "duplicate": 1}
        assert (ran.json["accepted"], ran.json["refused"]) == (303, refused)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    ran = local.publish("-")
    assert ran.code == 1 and "there is no report to the question of 'ages'" in ran.err
    assert not any((local.store.confidential / "runs").rglob("*"))


@pytest.mark.slow
def test_more_reports_are_a_revision_with_a_reason(local: LocalOffice) -> None:
    encoded(local, "--limit", "5")
    local.published("reports/a.parquet")
    (local.folder / "late.csv").write_text("who,age\nlate,44\n")
    encoded(local, values="late.csv", output="late.parquet")
    both = ("reports/a.parquet", "reports/late.parquet")
    assert local.publish(*both).code == 1
    for words in (["--revise"], ["--reason", "late"], ["--revise", "--reason", "  "]):
        ran = local.publish(*both, *words)
        assert ran.code == USAGE and "give --revise and --reason TEXT together" in ran.err
    revised = local.published(*both, "--revise", "--reason", "late reports", "--json").json
    assert {release["revision"] for release in revised["releases"]} == {2}
    assert asked(local, "SELECT max(revision) FROM dph_releases") == [(2,)]


@pytest.mark.slow
def test_an_answer_counts_people_or_their_values(local: LocalOffice) -> None:
    encoded(local, "--limit", "20")
    local.published("reports/a.parquet")
    assert " contributors, estimated over 4 cells: ages_city, " in local.office.run("answer", "ages_city").out
    local.declared(values_per_contributor=2, round="2026-01-05")
    encoded(local, output="b.parquet")
    local.published("reports/b.parquet")
    told = local.office.run("answer", "ages_city", "--period", "2026-01-05").out
    assert " values of contributors, estimated over" in told and "Estimated from 600 reports; " in told


@pytest.mark.slow
def test_what_is_taken_back_leaves_the_catalogue_and_says_so(local: LocalOffice) -> None:
    encoded(local, "--limit", "5")
    local.published("reports/a.parquet")
    ran = local.office.run("withdraw", "ages_city", "all", "--reason", "a [wrong] question")
    assert ran.code == 0 and "marked:" in ran.out
    card = (local.office.published("ages_city") / "card.html").read_text()
    assert "a [wrong] question" in card and "Withdrawn: do not use" in card
    assert asked(local, "SELECT DISTINCT release FROM dph_releases") == [("ages_state",)]
    for ran in (local.publish("reports/a.parquet"), local.office.run("answer", "ages_city")):
        assert ran.code == 1 and "was withdrawn on" in ran.err
    assert local.office.run("withdraw", "ages_city", "2026-01-05", "--reason", "wrong").code == 1
    assert local.office.run("withdraw", "nothing", "all", "--reason", "wrong").code == 1
    local.published("reports/a.parquet", "--revise", "--reason", "right")
    assert local.office.run("answer", "ages_city").code == 0
    assert local.office.run("ledger", "verify", "--json").json["missing"] == []


@pytest.mark.slow
def test_the_ledger_knows_nothing_of_it_and_goes_on(local: LocalOffice) -> None:
    encoded(local, "--limit", "5")
    local.published("reports/a.parquet")
    local.funded().write_spec()
    entries = len(local.office.entries())
    local.office.released()
    (shown,) = local.office.run("ledger", "show", "--json").json
    assert (shown["spent"], [charge["release"] for charge in shown["charges"]]) == ("1/2", ["wards"])
    verified = local.office.run("ledger", "verify", "--json").json
    assert (verified["publications"], verified["entries"] > entries) == (3, True)
    assert len(asked(local, "SELECT * FROM dph_releases")) == 3
    assert local.published("reports/a.parquet").out.count("already published") == 2


def test_reports_go_nowhere_but_into_a_new_file(local: LocalOffice) -> None:
    (local.folder / "reports" / "there.parquet").write_text("kept")
    refused = {"there.parquet": "is there already", "../nowhere/a.parquet": "lies in no folder"}
    for output, says in refused.items():
        ran = encode(local, "--limit", "5", output=output)
        assert ran.code == 1 and says in ran.err and "Nothing was answered" in ran.err
    assert not (local.folder / "records").exists()
    encoded(local, "--limit", "5")
    ran = encode(local, output="../records/b.parquet")
    assert ran.code == 1 and "lies among the records of contributors" in ran.err
    encoded(local, output="b.parquet")
    assert (local.folder / "reports" / "there.parquet").read_text() == "kept"


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("people.csv", "QUESTION comes first, then VALUES"),
        ("people.json", "not valid JSON"),
        ("people", "no YAML spec"),
    ],
)
def test_values_in_place_of_a_question_are_refused_without_a_word_of_them(
    local: LocalOffice, named: str, says: str
) -> None:
    (local.folder / named).write_text("who,age\nANNA,41\n")
    words = ["--column", "age", "--contributor", "who", "--record", "records", "--output", "a.parquet"]
    ran = local.office.run("local", "encode", named, "ages.yaml", *words)
    assert ran.code == 1 and says in ran.err and "ANNA" not in ran.err and "who" not in ran.err
    ran = local.office.run("local", "plan", named, "--contributors", "1000")
    assert ran.code == 1 and "no YAML spec of a collection" in ran.err and "ANNA" not in ran.err


@pytest.mark.parametrize("limit", ["0", "-1", "five", "1e9999", "nan", ""])
def test_a_limit_is_a_positive_number(local: LocalOffice, limit: str) -> None:
    ran = encode(local, "--limit", limit)
    assert ran.code == USAGE and "limit" in ran.err and not (local.folder / "records").exists()


def test_a_limit_too_small_is_said_and_nothing_is_sent(local: LocalOffice) -> None:
    ran = encode(local, "--limit", "1")
    assert ran.code == 1 and "nobody has so much left of 1" in ran.err
    assert list((local.folder / "reports").iterdir()) == []


def test_who_is_exhausted_is_told_to_the_office(local: LocalOffice) -> None:
    encoded(local, "--limit", "3")
    local.declared(round="2026-01-05")
    (local.folder / "more.csv").write_text("who,age\nnew,5\np1,5\n")
    ran = encoded(local, values="more.csv", output="b.parquet")
    assert "1 contributors answer with 1 reports" in ran.out and "1 had too little left of their limit" in ran.out


def test_rows_without_names_are_their_own_contributors(local: LocalOffice) -> None:
    ran = encoded(local, "--limit", "5", "--json", contributor="row")
    assert ran.json["contributors"] == 300
    assert pq.read_table(local.folder / "reports" / "a.parquet").num_rows == 300


def test_no_message_and_no_file_for_the_curator_holds_a_name_or_value(local: LocalOffice) -> None:
    held = pa.table({"who": ["canary-name"], "age": ["canary-value"]})
    pq.write_table(held, local.folder / "people.parquet")
    ran = encoded(local, "--limit", "5", values="people.parquet")
    sent = (local.folder / "reports" / "a.parquet").read_bytes()
    failed = encode(local, values="people.parquet", column="agee", output="b.parquet")
    assert failed.code == 1
    for told in (ran.out, ran.err, failed.err, sent.decode("latin-1")):
        assert "canary" not in told
    modes = (local.folder / "records").stat().st_mode & 0o777
    assert modes == 0o700


@pytest.mark.slow
def test_a_store_that_cannot_be_written_fails_by_one_message_and_replays(
    local: LocalOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded(local, "--limit", "5")

    def read_only(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("dphist_pipeline.releasing.store.make_folder", read_only)
        ran = local.publish("reports/a.parquet")
        assert ran.code == 1 and "may not read or change a file" in " ".join(ran.err.split()) and local.files() == {}
    local.published("reports/a.parquet")
    with monkeypatch.context() as patched:
        patched.setattr("dphist_pipeline.releasing.store.make_folder", read_only)
        assert local.published("reports/a.parquet").out.count("already published") == 2


def test_a_full_disk_while_reports_are_written_loses_no_answer(
    local: LocalOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dphist_pipeline.local.reports.pq.ParquetWriter.write_batch", full)
        ran = encode(local, "--limit", "5")
        assert ran.code == 1 and "No space left" in ran.err
    assert not (local.folder / "reports" / "a.parquet").exists()
    record = next((local.folder / "records").glob("*.parquet")).read_bytes()
    encoded(local)
    assert next((local.folder / "records").glob("*.parquet")).read_bytes() == record
    assert [path.name for path in (local.folder / "reports").iterdir()] == ["a.parquet"]


def test_without_a_period_the_latest_round_answers(local: LocalOffice) -> None:
    for name in ("ages_city", "weekly"):
        for period in ("all", "2026-01-05", "2026-03-02"):
            folder = local.folder / "made" / name / f"period={period}" / "revision=1"
            folder.mkdir(parents=True)
    assert latest_revision(local.folder / "made", "ages_city", None).parent.name == "period=2026-03-02"
