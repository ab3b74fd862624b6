"""Records of many contributors: one draw a question, whoever asks and whatever breaks, and no value on the disk."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import stat
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from error_codes import coded

from dphist_pipeline.base import files
from dphist_pipeline.errors import Halted, Refused
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.record_folder import DRAFT, LIMIT, Answers, RecordFolder

PART = Part(tuple(map(Fraction, range(41))), Fraction(1), "symmetric")
ASKED = Question("ages", (PART,))
THRICE = Question("ages", (PART,), values=3)
HALF = Question("ages", (PART,), values=4, participation=Fraction(1, 2))
PEOPLE = ["ann", "bob", "cid"]
SPAWN = multiprocessing.get_context("spawn")


def opened(folder: Path, limit: int | None = 5) -> RecordFolder:
    return RecordFolder.open(folder / "records", None if limit is None else Fraction(limit))


def answered(folder: Path, names: list[str], question: Question = ASKED, limit: int | None = 5) -> Answers:
    return opened(folder, limit).answer(question, names, np.arange(len(names), dtype=np.float64))


def pairs(answers: Answers) -> list[tuple[bytes, bytes]]:
    """Id and body of every report, in the order of the answers."""
    return [(name.tobytes(), body.tobytes()) for name, body in zip(answers.ids, answers.bodies, strict=True)]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "records").iterdir())}


@pytest.mark.parametrize("question", [ASKED, THRICE, HALF, Question("ages", (PART,), values=3, combine="summed")])
def test_asked_again_the_same_reports_come_in_the_same_order(tmp_path: Path, question: Question) -> None:
    first = answered(tmp_path, PEOPLE * 3, question)
    before = content(tmp_path)
    again = opened(tmp_path, None).answer(question, list(reversed(PEOPLE)), np.full(3, 39.0))
    assert pairs(first) == pairs(again) and content(tmp_path) == before
    assert (first.contributors, first.exhausted) == (again.contributors, again.exhausted) == (3, 0)


def test_reports_come_in_the_order_of_their_random_ids(tmp_path: Path) -> None:
    sent = pairs(answered(tmp_path, [f"p{number}" for number in range(200)]))
    assert sent == sorted(sent) and len(set(sent)) == 200


def test_new_people_join_and_the_old_ones_keep_their_reports(tmp_path: Path) -> None:
    first = set(pairs(answered(tmp_path, PEOPLE)))
    more = set(pairs(answered(tmp_path, ["dan", *PEOPLE, "eve"])))
    assert first < more and len(more) == 5
    assert set(pairs(answered(tmp_path, PEOPLE))) == first
    assert len(set(pairs(answered(tmp_path, ["dan"]))) & (more - first)) == 1


def test_every_question_adds_up_and_who_has_too_little_left_is_counted(tmp_path: Path) -> None:
    answered(tmp_path, ["ann", "bob"], THRICE)
    answered(tmp_path, ["ann"], Question("wages", (PART,), values=2))
    found = answered(tmp_path, ["ann", "bob", "cid"], Question("rents", (PART,), values=2))
    assert (found.contributors, found.exhausted, len(found.ids)) == (2, 1, 4)
    again = answered(tmp_path, ["ann", "bob", "cid"], Question("rents", (PART,), values=2))
    assert pairs(again) == pairs(found) and again.exhausted == 1
    with pytest.raises(
        Refused, check=coded("all_reached_their_limit"), match=r"spends epsilon 1, and nobody has so much left of 5"
    ):
        answered(tmp_path, ["ann", "ann"])
    assert len(answered(tmp_path, ["ann"], THRICE).ids) == 3


def test_only_some_are_sent_where_the_question_says_so_and_all_spend(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(500)]
    found = answered(tmp_path, names, HALF)
    assert found.contributors == 500 and abs(len(found.ids) - 1000) < 6.5 * math.sqrt(500)
    with pytest.raises(Refused, check=coded("all_reached_their_limit")):
        answered(tmp_path, names, THRICE)


def test_the_limit_may_be_reached_exactly_in_fractions(tmp_path: Path) -> None:
    thirds = [
        Question("ages", (Part(PART.edges, Fraction(1, 3), "grr"),), round=f"2026-01-0{day}") for day in range(1, 5)
    ]
    for question in thirds[:3]:
        assert len(answered(tmp_path, ["ann"], question, 1).ids) == 1
    with pytest.raises(Refused, check=coded("all_reached_their_limit")):
        answered(tmp_path, ["ann"], thirds[3], 1)


def test_a_refusal_leaves_everything_as_it_is(tmp_path: Path) -> None:
    answered(tmp_path, ["dan"], limit=1)
    before = content(tmp_path)
    with pytest.raises(Refused, check=coded("all_reached_their_limit")):
        answered(tmp_path, PEOPLE, THRICE, None)
    assert content(tmp_path) == before


def test_a_limit_that_lets_nobody_answer_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(Refused, check=coded("all_reached_their_limit")):
        answered(tmp_path, PEOPLE, THRICE, 1)
    assert content(tmp_path) == {}
    assert len(answered(tmp_path, PEOPLE, THRICE, 5).ids) == 9
    assert json.loads(content(tmp_path)[LIMIT])["limit"] == "5"


def test_a_limit_without_answers_gives_way_to_another(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / LIMIT).write_text('{"limit": "1"}')  # of a program that was killed before it answered
    with pytest.raises(Refused, check=coded("all_reached_their_limit")):
        answered(tmp_path, PEOPLE, THRICE, None)
    answered(tmp_path, PEOPLE, THRICE, 5)
    assert json.loads(content(tmp_path)[LIMIT])["limit"] == "5"


def test_of_two_limits_at_once_the_first_that_answers_holds(tmp_path: Path) -> None:
    late = opened(tmp_path, 50)
    answered(tmp_path, ["ann"], limit=5)
    before = content(tmp_path)
    with pytest.raises(Halted, check=coded("record_unusable"), match="begun with a limit of 5, and keeps it"):
        late.answer(THRICE, ["ann"], np.zeros(1))
    assert content(tmp_path) == before


def test_nobody_asked_is_nobody_answered(tmp_path: Path) -> None:
    found = answered(tmp_path, [])
    assert (found.ids.shape, found.bodies.shape, found.contributors) == ((0, 16), (0, 5), 0)


def test_a_limit_begins_a_record_once_and_stays(tmp_path: Path) -> None:
    with pytest.raises(Halted, check=coded("record_unusable"), match="begin one with a limit"):
        opened(tmp_path, None)
    answered(tmp_path, PEOPLE, limit=5)
    assert opened(tmp_path, None).limit == opened(tmp_path, 5).limit == 5
    with pytest.raises(Halted, check=coded("record_unusable"), match="begun with a limit of 5, and keeps it"):
        opened(tmp_path, 6)


def test_the_folder_and_its_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        answered(tmp_path, PEOPLE)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "records").iterdir()}
    assert modes == {LIMIT: 0o600, f"{ASKED.digest}.parquet": 0o600}
    assert stat.S_IMODE((tmp_path / "records").stat().st_mode) == 0o700


def test_a_record_holds_no_value(tmp_path: Path) -> None:
    canary = 27.182818284590451
    values = np.array([canary, math.nan, canary])
    opened(tmp_path).answer(THRICE, ["ann", "ann", "bob"], values)
    held = b"".join(content(tmp_path).values())
    assert b"ann" in held
    for told in (repr(canary).encode(), b"27.18", struct.pack("<d", canary), struct.pack(">d", canary)):
        assert told not in held
    file = next((tmp_path / "records").glob("*.parquet"))
    assert pq.read_schema(file).names == ["contributor", "report_id", "report", "sent"]


def places(answers: Answers) -> list[set[int]]:
    """The intervals that each report says, under an epsilon that leaves no doubt."""
    return [{place for place in range(40) if row[place]} for row in np.unpackbits(answers.bodies, axis=1)]


CERTAIN = Question("ages", (Part(PART.edges, Fraction(50), "symmetric"),), values=2)


def test_each_contributor_reports_so_many_values_of_their_own(tmp_path: Path) -> None:
    names = ["ann", "bob", "ann", "cid", "dan", "dan", "dan"]
    values = np.array([3.0, 7.0, 5.0, math.nan, math.inf, math.nan, 9.0])
    said: dict[str, list[set[int]]] = {}
    contributors = opened(tmp_path, 100)
    everybody = contributors.answer(CERTAIN, names, values)
    for name in ["ann", "bob", "cid", "dan"]:
        said[name] = sorted(places(contributors.answer(CERTAIN, [name], np.array([0.0]))), key=sorted)
    assert said == {"ann": [{3}, {5}], "bob": [set(), {7}], "cid": [set(), set()], "dan": [set(), {9}]}
    assert len(everybody.ids) == 8


def test_of_more_values_any_may_be_reported(tmp_path: Path) -> None:
    names = [f"p{number // 4}" for number in range(4000)]
    found = opened(tmp_path, 100).answer(CERTAIN, names, np.tile([1.0, 2.0, 3.0, 4.0], 1000))
    counts = [sum(place in told for told in places(found)) for place in (1, 2, 3, 4)]
    assert sum(counts) == 2000 and all(abs(count - 500) < 6.5 * math.sqrt(250) for count in counts)


@pytest.mark.slow
def test_long_and_strange_names_are_kept_whole(tmp_path: Path) -> None:
    names = ["b", "a", "a\0b", "a b", "ä", "\U0001f600", "x" * 100_000]
    first = answered(tmp_path, names * 2000)
    assert first.contributors == len(names) and pairs(answered(tmp_path, names)) == pairs(first)


def _answer_elsewhere(folder: Path, gate: Any, answers: Any) -> None:
    gate.wait()
    answers.put(pairs(answered(folder, [f"p{number}" for number in range(50)])))


@pytest.mark.slow
def test_programs_that_ask_at_once_draw_once(tmp_path: Path) -> None:
    gate, answers = SPAWN.Barrier(3), SPAWN.Queue()
    programs = [SPAWN.Process(target=_answer_elsewhere, args=(tmp_path, gate, answers)) for _ in range(3)]
    for program in programs:
        program.start()
    told = [answers.get(timeout=300) for _ in programs]
    for program in programs:
        program.join()
    assert told[0] == told[1] == told[2] and len(told[0]) == 50


def _killed(folder: Path, at: str, names: list[str]) -> None:
    """Answers in a child that is killed at a step."""
    contributors = opened(folder)
    child = os.fork()
    if child == 0:
        setattr(os if at == "fsync" else Path, at, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        contributors.answer(ASKED, names, np.zeros(len(names)))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_who_is_killed_before_the_record_is_there_gave_nothing_away(tmp_path: Path, at: str) -> None:
    first = set(pairs(answered(tmp_path, PEOPLE)))
    _killed(tmp_path, at, [*PEOPLE, "dan"])
    assert DRAFT in content(tmp_path)
    more = answered(tmp_path, [*PEOPLE, "dan"])
    assert first < set(pairs(more)) and more.contributors == 4
    assert DRAFT not in content(tmp_path)


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_who_is_killed_before_the_limit_is_there_binds_nobody(tmp_path: Path, at: str) -> None:
    _killed(tmp_path, at, PEOPLE)
    assert list(content(tmp_path)) == [DRAFT]
    assert len(answered(tmp_path, PEOPLE, THRICE, 4).ids) == 9
    assert json.loads(content(tmp_path)[LIMIT])["limit"] == "4"


def test_the_limit_is_on_the_disk_before_the_first_answer(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        files.sync_folder = lambda folder: os.kill(os.getpid(), signal.SIGKILL) if (folder / LIMIT).exists() else None
        answered(tmp_path, PEOPLE)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert list(content(tmp_path)) == [LIMIT]


def test_who_is_killed_after_the_record_is_there_gives_the_same_again(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        files.sync_folder = lambda folder: os.kill(os.getpid(), signal.SIGKILL) if any(folder.glob("*.p*")) else None
        answered(tmp_path, PEOPLE)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    before = content(tmp_path)
    assert len(answered(tmp_path, PEOPLE).ids) == 3 and content(tmp_path) == before


DAMAGED_LIMITS = [b"", b"{", b"[]", b"null", b'{"limit": 0}', b'{"limit": "-1"}', b'{"limit": "1/0"}', b"[" * 100_000]
DAMAGED_LIMITS += [b'{"limit": Infinity}', b'{"limit": null}', b'{"limit": "five"}', b"\xff\xfe", b'{"limit": [5]}']


@pytest.mark.parametrize("damage", DAMAGED_LIMITS, ids=range(len(DAMAGED_LIMITS)))
@pytest.mark.parametrize("limit", [None, 5])
def test_a_damaged_limit_answers_nothing(tmp_path: Path, damage: bytes, limit: int | None) -> None:
    answered(tmp_path, PEOPLE)
    (tmp_path / "records" / LIMIT).write_bytes(damage)
    with pytest.raises(Halted, check=coded("record_unusable"), match="damaged"):
        opened(tmp_path, limit)


def test_a_lost_limit_is_not_begun_anew(tmp_path: Path) -> None:
    answered(tmp_path, PEOPLE)
    (tmp_path / "records" / LIMIT).unlink()
    with pytest.raises(Halted, check=coded("record_unusable"), match="restore it, or name a new folder"):
        opened(tmp_path, 100)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file")
    with pytest.raises(Halted, check=coded("record_unusable"), match="cannot be made"):
        opened(tmp_path)


def _edited(**changes: Any) -> Any:
    def edit(file: Path) -> None:
        table = pq.read_table(file)
        held = {name: changes.get(name, column) for name, column in zip(table.column_names, table.columns, strict=True)}
        kept = {name: column for name, column in held.items() if column is not ...}
        metadata = changes.get("metadata", table.schema.metadata)
        pq.write_table(pa.table(kept).replace_schema_metadata(metadata), file)

    return edit


DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "folder": lambda file: (file.unlink(), file.mkdir()),
    "no epsilon": _edited(metadata={}),
    "epsilon 0": _edited(metadata={b"epsilon": b"0"}),
    "epsilon divided by 0": _edited(metadata={b"epsilon": b"1/0"}),
    "no names": _edited(contributor=...),
}
OWN_DAMAGES = {
    **DAMAGES,
    "another epsilon": _edited(metadata={b"epsilon": b"7"}),
    "no ids": _edited(report_id=...),
    "short ids": _edited(report_id=pa.array([b"x" * 8, b"y" * 24, b"z" * 16])),
    "short reports": _edited(report=pa.array([b"x" * 4, b"y" * 6, b"z" * 5])),
    "null report": _edited(report=pa.array([b"x" * 5, None, b"z" * 5])),
    "null sent": _edited(sent=pa.array([True, None, True])),
    "null name": _edited(contributor=pa.array(["ann", None, "cid"])),
    "one name twice": _edited(contributor=pa.array(["ann", "ann", "cid"])),
}


@pytest.mark.parametrize("damage", OWN_DAMAGES)
def test_a_damaged_record_of_the_question_answers_nothing(tmp_path: Path, damage: str) -> None:
    answered(tmp_path, PEOPLE)
    OWN_DAMAGES[damage](tmp_path / "records" / f"{ASKED.digest}.parquet")
    with pytest.raises(Halted, check=coded("record_unusable"), match="damaged; restore it"):
        answered(tmp_path, PEOPLE)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_of_another_question_answers_nothing(tmp_path: Path, damage: str) -> None:
    answered(tmp_path, PEOPLE)
    DAMAGES[damage](tmp_path / "records" / f"{ASKED.digest}.parquet")
    before = sorted(content(tmp_path)) if damage != "folder" else None
    with pytest.raises(Halted, check=coded("record_unusable"), match="damaged; restore it"):
        answered(tmp_path, PEOPLE, THRICE)
    assert before is None or sorted(content(tmp_path)) == before


def test_a_record_that_cannot_be_written_gives_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contributors = opened(tmp_path)
    contributors.answer(THRICE, ["dan"], np.zeros(1))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Halted, check=coded("record_unusable"), match="No space left on device"):
        contributors.answer(ASKED, PEOPLE, np.zeros(3))
    monkeypatch.undo()
    assert set(content(tmp_path)) == {DRAFT, LIMIT, f"{THRICE.digest}.parquet"}
    assert len(contributors.answer(ASKED, PEOPLE, np.zeros(3)).ids) == 3
    assert json.loads(content(tmp_path)[LIMIT])["limit"] == "5"


def test_rows_of_a_file_that_grew_would_be_other_people(tmp_path: Path) -> None:
    answered(tmp_path, [f"row {number} of a.csv" for number in range(3)])
    records = opened(tmp_path, None)
    records.refuse_changed_rows("a.csv", 3)
    records.refuse_changed_rows("b.csv", 4)
    with pytest.raises(Halted, check=coded("record_unusable"), match=r"another number of rows of a\.csv"):
        records.refuse_changed_rows("a.csv", 4)
