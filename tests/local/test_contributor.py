"""A contributor's record: one answer a question, whatever is asked again, races or is killed; and no value in it."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_codes import coded
from fork_server import PROCESSES

from dphist_pipeline.base import files
from dphist_pipeline.errors import DphistError, Halted, Refused
from dphist_pipeline.local import contributor as module
from dphist_pipeline.local.contributor import Contributor, Report
from dphist_pipeline.local.question import Part, Question

# Wide, so that two draws are never the same.
EDGES = tuple(map(Fraction, range(257)))
ASKED = Question("hours", (Part(EDGES, Fraction(1, 2), "optimized"),), round="2026-03-02", values=2)
OTHER = replace(ASKED, round="2026-03-09")
VALUES = [12345.678901, 17.25]


@pytest.fixture
def person(tmp_path: Path) -> Contributor:
    return Contributor.create(tmp_path / "record.json", Fraction(2))


def content(person: Contributor) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(person.path.read_bytes())
    return read


def files_beside(person: Contributor) -> list[str]:
    return sorted(path.name for path in person.path.parent.iterdir())


def test_a_question_asked_again_has_the_same_answer_whatever_the_values_are_by_then(person: Contributor) -> None:
    first = person.answer(ASKED, VALUES)
    assert person.answer(ASKED, VALUES) == first
    assert Contributor(person.path).answer(ASKED, [3.0]) == first
    assert person.answer(Question.from_json(ASKED.to_json()), []) == first
    assert person.spent == ASKED.epsilon == 1


def test_another_question_has_fresh_reports_and_adds_its_epsilon(person: Contributor) -> None:
    first, second = person.answer(ASKED, VALUES), person.answer(OTHER, VALUES)
    assert not {report.id for report in first} & {report.id for report in second}
    assert not {report.body for report in first} & {report.body for report in second}
    assert person.spent == 2 and person.limit == 2
    assert [person.answer(ASKED, []), person.answer(OTHER, [])] == [first, second]


def test_every_report_has_the_length_that_was_asked_and_an_id_of_its_own(person: Contributor) -> None:
    for values in ([], VALUES, [math.nan], [*VALUES] * 9):
        asked = replace(
            ASKED, collection=f"hours_{len(values)}", parts=(replace(ASKED.parts[0], epsilon=Fraction(1, 9)),)
        )
        reports = person.answer(asked, values)
        assert [len(report.body) for report in reports] == [asked.report_bytes] * 2
        assert all(len(report.id) == 16 for report in reports) and reports[0].id != reports[1].id


def test_beyond_the_limit_nothing_is_drawn_and_earlier_answers_stay(
    person: Contributor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = person.answer(ASKED, VALUES)
    before = person.path.read_bytes()
    dearer = replace(OTHER, parts=(replace(OTHER.parts[0], epsilon=Fraction(500_001, 10**6)),))
    with monkeypatch.context() as patched, pytest.raises(Refused, check=coded("limit_reached")) as seen:
        patched.setattr(module, "encode", lambda *_: pytest.fail("drawn"))
        person.answer(dearer, VALUES)
    told = vars(seen.value)
    assert (told["spent"], told["limit"], told["question"]) == (1, 2, dearer)
    assert "Nothing was answered" in str(seen.value) and isinstance(seen.value, DphistError)
    assert person.path.read_bytes() == before and person.answer(ASKED, VALUES) == first
    person.answer(OTHER, VALUES)  # exactly the limit
    with pytest.raises(Refused, check=coded("limit_reached")):
        person.answer(
            replace(ASKED, collection="days", parts=(replace(ASKED.parts[0], epsilon=Fraction(1, 10**6)),)), []
        )


def test_a_sampled_question_spends_its_epsilon_even_if_nothing_is_sent(person: Contributor) -> None:
    rare = replace(ASKED, participation=Fraction(1, 10**9))
    assert person.answer(rare, VALUES) == () and person.answer(rare, VALUES) == ()
    assert person.spent == 1


def test_the_record_and_the_errors_hold_no_value(person: Contributor) -> None:
    person.answer(ASKED, VALUES)
    text = person.path.read_text()
    for value in VALUES:
        assert str(value) not in text and value.hex() not in text and np.float64(value).tobytes().hex() not in text
    (known,) = content(person)["answered"].values()
    assert set(known) == {"collection", "round", "epsilon", "reports"}
    with pytest.raises(Refused, check=coded("limit_reached")) as seen:
        Contributor.create(person.path.with_name("poor"), Fraction(1, 2)).answer(ASKED, VALUES)
    assert not any(str(value) in str(seen.value) for value in VALUES)


def test_only_its_owner_may_read_the_record(person: Contributor) -> None:
    assert person.path.stat().st_mode & 0o777 == 0o600
    person.answer(ASKED, VALUES)
    assert person.path.stat().st_mode & 0o777 == 0o600
    assert files_beside(person) == ["record.json"]


def test_a_record_is_begun_once_and_with_a_limit(person: Contributor, tmp_path: Path) -> None:
    person.answer(ASKED, VALUES)
    with pytest.raises(Halted, check=coded("record_unusable"), match="is there already"):
        Contributor.create(person.path, Fraction(9))
    assert person.spent == 1
    for limit in (0, -1):
        with pytest.raises(Halted, check=coded("record_unusable"), match="limit above 0"):
            Contributor.create(tmp_path / "other", Fraction(limit))
    with pytest.raises(Halted, check=coded("record_unusable"), match="in no folder"):
        Contributor.create(tmp_path / "nowhere" / "record", Fraction(1))


def test_without_a_record_nothing_is_answered(tmp_path: Path) -> None:
    for path in (tmp_path / "record.json", tmp_path / "nowhere" / "record.json", tmp_path):
        with pytest.raises(Halted, check=coded("record_unusable")):
            Contributor(path).answer(ASKED, VALUES)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_record_that_was_cut_off_answers_nothing(person: Contributor, share: float) -> None:
    person.answer(ASKED, VALUES)
    whole = person.path.read_bytes().rstrip()
    person.path.write_bytes(whole[: int(len(whole) * share)])
    for ask in (ASKED, OTHER):
        with pytest.raises(Halted, check=coded("record_unusable"), match="missing or damaged"):
            person.answer(ask, VALUES)
    with pytest.raises(Halted, check=coded("record_unusable")):
        _ = person.spent, person.limit


def spoiled(change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Callable[[dict[str, Any]], Any]:
    """A change to a record and to its one answer."""

    def spoil(record: dict[str, Any]) -> Any:
        (known,) = record["answered"].values()
        change(record, known)
        return record

    return spoil


DAMAGE = {
    "a list": lambda record: [record],
    "nothing": lambda record: None,
    "of another version": spoiled(lambda record, known: record.update(format=2)),
    "no version": spoiled(lambda record, known: record.pop("format")),
    "no limit": spoiled(lambda record, known: record.pop("limit")),
    "limit of nothing": spoiled(lambda record, known: record.update(limit=None)),
    "limit without end": spoiled(lambda record, known: record.update(limit=math.inf)),
    "limit of no number": spoiled(lambda record, known: record.update(limit="nan")),
    "limit by zero": spoiled(lambda record, known: record.update(limit="1/0")),
    "limit below 0": spoiled(lambda record, known: record.update(limit="-1")),
    "answers of nobody": spoiled(lambda record, known: record.update(answered=[])),
    "an answer of nothing": spoiled(lambda record, known: record["answered"].update(abc=None)),
    "an epsilon below 0": spoiled(lambda record, known: known.update(epsilon="-1")),
    "an epsilon of 0": spoiled(lambda record, known: known.update(epsilon="0")),
    "no epsilon": spoiled(lambda record, known: known.pop("epsilon")),
    "no reports": spoiled(lambda record, known: known.pop("reports")),
    "reports that are a number": spoiled(lambda record, known: known.update(reports=5)),
    "a report without a body": spoiled(lambda record, known: known.update(reports=[["00" * 16]])),
    "a report that is no hex": spoiled(lambda record, known: known.update(reports=[["00" * 16, "xy"]])),
    "a short id": spoiled(lambda record, known: known.update(reports=[["00" * 15, "00"]])),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_answers_nothing(person: Contributor, damage: str) -> None:
    person.answer(ASKED, VALUES)
    person.path.write_text(json.dumps(DAMAGE[damage](content(person))))
    before = person.path.read_bytes()
    for ask in (ASKED, OTHER):
        with pytest.raises(Halted, check=coded("record_unusable"), match="missing or damaged"):
            person.answer(ask, VALUES)
    assert person.path.read_bytes() == before


def test_a_record_that_nests_without_end_answers_nothing(person: Contributor) -> None:
    person.path.write_text("[" * 200_000)
    with pytest.raises(Halted, check=coded("record_unusable")):
        person.answer(ASKED, VALUES)


def test_reports_are_given_away_only_once_they_are_on_the_disk(
    person: Contributor, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replaced = os.fsync, Path.replace

    def noted_fsync(handle: int) -> None:
        done.append(f"fsync {Path(f'/proc/self/fd/{handle}').readlink().name}")
        fsync(handle)

    def noted_replace(path: Path, target: Path) -> Path:
        done.append(f"replace {path.name} {target.name}")
        return replaced(path, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    person.answer(ASKED, VALUES)
    folder = person.path.parent.name
    assert done == ["fsync .record.json.draft", "replace .record.json.draft record.json", f"fsync {folder}"]


@pytest.mark.parametrize("fails", ["write_durably", "sync_folder"])
def test_a_disk_that_fails_gives_no_report_away(
    person: Contributor, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with (
        monkeypatch.context() as patched,
        pytest.raises(Halted, check=coded("record_unusable"), match="No space left on device"),
    ):
        patched.setattr(files, fails, full)
        person.answer(ASKED, VALUES)
    # Either nothing was kept, or what was kept is what is answered from now on.
    kept = content(person)["answered"].get(ASKED.digest)
    reports = person.answer(ASKED, VALUES)
    assert kept is None or [report.body.hex() for report in reports] == [body for _, body in kept["reports"]]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def answer_and_die(path: Path, before: bool) -> None:
    """Answers, and is killed right before or right after the new record gets its name."""
    replaced = Path.replace

    def killed(draft: Path, target: Path) -> None:
        if not before:
            replaced(draft, target)
        die()

    Path.replace = killed  # type: ignore[method-assign,assignment]
    Contributor(path).answer(ASKED, VALUES)


@pytest.mark.parametrize("before", [True, False])
def test_whoever_is_killed_while_writing_leaves_the_old_record_or_the_new_one(
    person: Contributor, before: bool
) -> None:
    first = person.answer(OTHER, VALUES)
    for _ in range(2):  # a draft that was left does not disturb the next
        process = PROCESSES.Process(target=answer_and_die, args=(person.path, before))
        process.start()
        process.join()
    assert (process.exitcode == -signal.SIGKILL) == before  # asked again, the new record has the answer
    assert person.answer(OTHER, VALUES) == first
    assert (ASKED.digest in content(person)["answered"]) != before
    reports = person.answer(ASKED, VALUES)
    assert person.answer(ASKED, VALUES) == reports and person.spent == 2
    assert files_beside(person) == ["record.json"]


def answer_at_once(path: Path, barrier: Any, reports: Any) -> None:
    barrier.wait()
    answers = [Contributor(path).answer(ask, VALUES) for ask in (ASKED, OTHER)]
    reports.put([(report.id, report.body) for answer in answers for report in answer])


def test_programs_that_ask_at_once_get_the_same_reports_and_spend_once(person: Contributor) -> None:
    many = 6
    alias = person.path.with_name("alias.json")
    alias.symlink_to(person.path)
    elsewhere = person.path.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "record.json").symlink_to(person.path)
    paths = [person.path, alias, elsewhere / "record.json"] * (many // 3)
    barrier, reports = PROCESSES.Barrier(many), PROCESSES.Queue()
    asking = [PROCESSES.Process(target=answer_at_once, args=(path, barrier, reports)) for path in paths]
    for process in asking:
        process.start()
    answers = [reports.get(timeout=300) for _ in asking]
    for process in asking:
        process.join()
    assert all(answer == answers[0] for answer in answers)
    assert person.spent == 2 and alias.is_symlink()


def test_a_line_names_the_question_and_spells_out_the_report(person: Contributor) -> None:
    for report in person.answer(ASKED, VALUES):
        digest, name, body = report.line(ASKED).split(" ")
        assert (digest, bytes.fromhex(name), bytes.fromhex(body)) == (ASKED.digest[:16], report.id, report.body)
        assert re.fullmatch(r"[0-9a-f ]+", report.line(ASKED))
    assert Report(b"\0" * 16, b"\1").line(ASKED) == f"{ASKED.digest[:16]} {'00' * 16} 01"


ENGINES = ("polars", "duckdb", "dagster", "pyarrow", "pydantic", "yaml", "numba", "narwhals", "scipy", "pandas")


def test_a_contributors_program_needs_numpy_and_cryptography_only(tmp_path: Path) -> None:
    (tmp_path / "question.json").write_text(ASKED.to_json())
    code = f"""
import sys
before = set(sys.modules)
for name in {ENGINES}:
    sys.modules[name] = None
from fractions import Fraction
from dphist_pipeline.local.contributor import Contributor
from dphist_pipeline.local.question import Question
asked = Question.from_json(open("question.json", "rb").read())
person = Contributor.create("record.json", Fraction(2))
print(*(report.line(asked) for report in person.answer(asked, [3.5])), sep="\\n")
files = {{name: str(getattr(sys.modules[name], "__file__", "")) for name in set(sys.modules) - before}}
print(*sorted({{name.partition(".")[0] for name, file in files.items() if "site-packages" in file}}))
"""
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    *lines, loaded = shown.stdout.splitlines()
    again = Contributor(tmp_path / "record.json").answer(ASKED, [])
    assert lines == [report.line(ASKED) for report in again] and len(lines) == 2
    assert {"numpy", "cryptography"} <= set(loaded.split()) <= {"numpy", "cryptography", "_cffi_backend"}
