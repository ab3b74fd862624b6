"""The journal: one answer a step, whole and durable before anybody sees it, whatever races or is killed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fork_server import PROCESSES
from numpy.typing import NDArray

from dphist_pipeline.base.files import make_folder
from dphist_pipeline.confidential.journal import Journal, JournalMismatch, Vouch

QUESTION = {"door": "noisy_cells", "epsilon": "1/2", "scale": "2", "partition": ""}
CHARGE = "c0ffee"
VALUES = np.array([5, -7, 2**52, -(2**52), 0])
FILE_OPERATIONS = ("open", "write", "fsync", "link", "unlink", "mkdir", "close")


def journal_in(place: Path, charge: str = CHARGE, vouch: Vouch = lambda step, digest: None) -> Journal:
    """A journal whose folder has to be made, as in a store, and whose scratch folder is there."""
    (place / "scratch").mkdir(exist_ok=True)
    return Journal(folder_in(place), place / "scratch", charge, vouch)


def folder_in(place: Path) -> Path:
    return place / "journal" / "weekly" / "2026-03-02" / "1"


def files_below(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def never() -> NDArray[np.int64]:
    raise AssertionError("drawn although there is an answer")


def random_draw() -> NDArray[np.int64]:
    return np.frombuffer(os.urandom(80), dtype=np.int64).copy()


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    journal_in(tmp_path).answer("counts", QUESTION, lambda: VALUES)
    return tmp_path


ANSWER = "journal/weekly/2026-03-02/1/counts.answer"


def test_the_first_answer_stands(answered: Path) -> None:
    for _ in range(3):
        again = journal_in(answered).answer("counts", QUESTION, never)
        assert np.array_equal(again, VALUES) and again.dtype == np.int64
    assert files_below(answered) == [ANSWER]


def test_each_step_has_its_own_answer(answered: Path) -> None:
    other = journal_in(answered).answer("structure", QUESTION, lambda: VALUES[:2])
    assert other.tolist() == [5, -7]
    assert journal_in(answered).answer("counts", QUESTION, never).tolist() == VALUES.tolist()


def test_a_draw_that_fails_leaves_no_answer(tmp_path: Path) -> None:
    def fails() -> NDArray[np.int64]:
        raise RuntimeError("a broken sampler")

    with pytest.raises(RuntimeError):
        journal_in(tmp_path).answer("counts", QUESTION, fails)
    assert files_below(tmp_path) == []


def test_whoever_loses_reads_the_winners_answer(tmp_path: Path) -> None:
    def loses() -> NDArray[np.int64]:
        journal_in(tmp_path).answer("counts", QUESTION, lambda: VALUES)
        return VALUES + 1

    assert np.array_equal(journal_in(tmp_path).answer("counts", QUESTION, loses), VALUES)
    assert files_below(tmp_path) == [ANSWER]


def test_whoever_loses_to_another_question_is_refused(tmp_path: Path) -> None:
    def loses() -> NDArray[np.int64]:
        journal_in(tmp_path).answer("counts", QUESTION | {"scale": "4"}, lambda: VALUES)
        return VALUES + 1

    with pytest.raises(JournalMismatch, match="scale"):
        journal_in(tmp_path).answer("counts", QUESTION, loses)


@pytest.mark.parametrize("part", QUESTION)
def test_an_answer_to_another_question_is_refused(answered: Path, part: str) -> None:
    with pytest.raises(JournalMismatch, match=f"another {part}"):
        journal_in(answered).answer("counts", QUESTION | {part: "another"}, never)


def test_an_answer_of_another_charge_is_refused(answered: Path) -> None:
    with pytest.raises(JournalMismatch, match="another charge"):
        journal_in(answered, "decaf", Vouching(refuses=True)).answer("counts", QUESTION, never)


def test_an_answer_under_another_name_is_refused(answered: Path) -> None:
    (answered / ANSWER).rename(folder_in(answered) / "structure.answer")
    with pytest.raises(JournalMismatch, match="another step"):
        journal_in(answered).answer("structure", QUESTION, never)


def test_an_answer_with_a_flipped_bit_anywhere_is_refused(answered: Path) -> None:
    whole, path = (answered / ANSWER).read_bytes(), answered / ANSWER
    asked = {**QUESTION, "step": "counts", "charge": CHARGE}
    for place in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(JournalMismatch):
                Journal._read(path, asked)
    path.write_bytes(whole)
    assert np.array_equal(Journal._read(path, asked)[0], VALUES)


def test_an_answer_that_was_cut_or_grew_is_refused(answered: Path) -> None:
    whole, path = (answered / ANSWER).read_bytes(), answered / ANSWER
    for damaged in (*(whole[:size] for size in range(len(whole))), whole + b"\0", whole + whole, b"[]\n", b"null\n"):
        path.write_bytes(damaged)
        with pytest.raises(JournalMismatch, match="damaged"):
            journal_in(answered).answer("counts", QUESTION, never)
    assert path.read_bytes() == damaged


def test_the_error_says_what_to_do_and_shows_no_value(answered: Path) -> None:
    with pytest.raises(JournalMismatch, match="--revise") as caught:
        journal_in(answered, "decaf").answer("counts", QUESTION, never)
    assert str(2**52) not in str(caught.value)


def test_answers_are_private_to_their_owner(answered: Path) -> None:
    assert (answered / ANSWER).stat().st_mode & 0o777 == 0o600
    for folder in (answered / ANSWER).parents[:4]:
        assert folder.stat().st_mode & 0o777 == 0o700


# Vouched for before it is seen


class Vouching:
    """A witness that notes what it is asked, and refuses when told to."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.asked: list[tuple[str, str]] = []

    def __call__(self, step: str, digest: str) -> None:
        self.asked.append((step, digest))
        if self.refuses:
            raise JournalMismatch(Path(step), "was drawn elsewhere")


def test_every_reading_of_an_answer_is_vouched_for_by_the_same_digest(tmp_path: Path) -> None:
    vouching = Vouching()
    for _ in range(3):
        journal_in(tmp_path, vouch=vouching).answer("counts", QUESTION, lambda: VALUES)
    header, _, payload = (tmp_path / ANSWER).read_bytes().partition(b"\n")
    nonce = json.loads(header)["nonce"]
    digest = hashlib.sha256(nonce.encode() + payload).hexdigest()
    assert len(bytes.fromhex(nonce)) == 32
    assert vouching.asked == [("counts", digest)] * 3


def test_equal_answers_have_different_digests(tmp_path: Path) -> None:
    vouching = Vouching()
    for copy in ("a", "b"):
        (tmp_path / copy).mkdir()
        journal_in(tmp_path / copy, vouch=vouching).answer("counts", QUESTION, lambda: VALUES)
    journal_in(tmp_path / "a", vouch=vouching).answer("other", QUESTION, lambda: VALUES)
    assert len({digest for _, digest in vouching.asked}) == 3


def test_an_answer_that_is_not_vouched_for_is_never_given(tmp_path: Path) -> None:
    refusing = Vouching(refuses=True)
    for draw in (lambda: VALUES, never):
        with pytest.raises(JournalMismatch, match="drawn elsewhere"):
            journal_in(tmp_path, vouch=refusing).answer("counts", QUESTION, draw)
    assert len(set(refusing.asked)) == 1 and len(refusing.asked) == 2


def test_an_answer_is_durable_before_it_is_vouched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = recorded_operations(monkeypatch)
    journal_in(tmp_path, vouch=lambda *_: done.append(("vouch", ""))).answer("counts", QUESTION, lambda: VALUES)
    assert done[-2:] == [("fsync", str(folder_in(tmp_path))), ("vouch", "")]


def test_whoever_loses_vouches_for_the_winners_answer_alone(tmp_path: Path) -> None:
    winner, loser = Vouching(), Vouching()

    def loses() -> NDArray[np.int64]:
        journal_in(tmp_path, vouch=winner).answer("counts", QUESTION, lambda: VALUES)
        return VALUES

    journal_in(tmp_path, vouch=loser).answer("counts", QUESTION, loses)
    assert loser.asked == winner.asked and len(loser.asked) == 1


def test_an_answer_of_an_earlier_version_has_no_nonce_and_is_vouched_for_as_a_whole(tmp_path: Path) -> None:
    payload = VALUES.astype("<i8").tobytes()
    header = {**QUESTION, "step": "counts", "charge": CHARGE, "size": "5"}
    header["sha256"] = hashlib.sha256(payload).hexdigest()
    content = json.dumps(header, sort_keys=True).encode() + b"\n" + payload
    folder_in(tmp_path).mkdir(parents=True)
    (tmp_path / ANSWER).write_bytes(content)
    vouching = Vouching()
    assert np.array_equal(journal_in(tmp_path, vouch=vouching).answer("counts", QUESTION, never), VALUES)
    assert vouching.asked == [("counts", hashlib.sha256(content).hexdigest())]


# Durable before it is seen


def recorded_operations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every fsync (by the path of its file), link and mkdir from now on, in order."""
    done: list[tuple[str, str]] = []
    fsync, link, mkdir = os.fsync, os.link, os.mkdir

    def noted_fsync(handle: int) -> None:
        done.append(("fsync", str(Path(f"/proc/self/fd/{handle}").readlink())))
        fsync(handle)

    def noted_link(source: Any, target: Any) -> None:
        done.append(("written", str(Path(source).stat().st_size)))
        done.append(("link", f"{source} {target}"))
        link(source, target)

    def noted_mkdir(path: Any, mode: int = 0o777) -> None:
        done.append(("mkdir", str(path)))
        mkdir(path, mode)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "link", noted_link)
    monkeypatch.setattr(os, "mkdir", noted_mkdir)
    return done


def test_an_answer_is_durable_before_it_is_named_and_its_name_before_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(tmp_path)
    done = recorded_operations(monkeypatch)
    read = Path.read_bytes

    def noted_read(path: Path) -> bytes:
        done.append(("read", str(path)))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", noted_read)
    journal.answer("counts", QUESTION, lambda: VALUES)

    linked = next(place for place, (operation, _) in enumerate(done) if operation == "link")
    scratch, final = done[linked][1].split()
    size = (tmp_path / ANSWER).stat().st_size
    assert Path(final) == tmp_path / ANSWER and Path(scratch).parent == tmp_path / "scratch"
    assert done[linked - 2 : linked] == [("fsync", scratch), ("written", str(size))]
    assert done[linked + 1 :] == [("fsync", str(folder_in(tmp_path))), ("read", final)]
    for folder in folder_in(tmp_path), *folder_in(tmp_path).parents[:3]:
        made = done.index(("mkdir", str(folder)))
        assert ("fsync", str(folder.parent)) in done[made + 1 : linked], "a folder whose entry is not durable"


def test_an_answer_found_is_made_durable_before_it_is_seen(answered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = recorded_operations(monkeypatch)
    journal_in(answered).answer("counts", QUESTION, never)
    assert ("fsync", str(folder_in(answered))) in done


@pytest.mark.parametrize("made", range(5))
def test_a_folder_half_made_by_a_killed_process_is_made_durable_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: int
) -> None:
    path = folder_in(tmp_path)
    chain = [*reversed(path.parents[:3]), path]
    for folder in chain[:made]:
        folder.mkdir()
    done = recorded_operations(monkeypatch)
    make_folder(path)
    durable = [Path(place) for operation, place in done if operation == "fsync"]
    assert {folder.parent for folder in chain[max(0, made - 1) :]} <= set(durable)


# Races and kills


def answer_at_once(place: Path, barrier: Any, answers: Any) -> None:
    def draw() -> NDArray[np.int64]:
        barrier.wait(300)  # all have seen that there is no answer
        return random_draw()

    journal = journal_in(place)
    for step in ("structure", "counts"):
        answers.put((step, journal.answer(step, QUESTION, draw).tobytes()))


def test_many_processes_that_race_read_one_answer(tmp_path: Path) -> None:
    journal_in(tmp_path)
    racers = 8
    barrier, answers = PROCESSES.Barrier(racers), PROCESSES.Queue()
    processes = [PROCESSES.Process(target=answer_at_once, args=(tmp_path, barrier, answers)) for _ in range(racers)]
    for process in processes:
        process.start()
    seen = [answers.get(timeout=300) for _ in range(2 * racers)]
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    assert len(set(seen)) == 2 and {step for step, _ in seen} == {"structure", "counts"}
    for step, values in set(seen):
        assert journal_in(tmp_path).answer(step, QUESTION, never).tobytes() == values
    assert files_below(tmp_path) == [ANSWER, ANSWER.replace("counts", "structure")]


class HalvingFile:
    """Writes in two halves, between which the process may die."""

    def __init__(self, handle: int, mode: str) -> None:
        self._handle = handle

    def __enter__(self) -> HalvingFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def write(self, content: bytes) -> None:
        os.write(self._handle, content[: len(content) // 2])
        os.write(self._handle, content[len(content) // 2 :])

    def flush(self) -> None: ...

    def fileno(self) -> int:
        return self._handle


def kill_at(moment: int) -> None:
    """Makes this process kill itself right before its file operation of that number."""
    moments = iter(range(moment + 1))

    def mortal(operation: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*args: Any, **options: Any) -> Any:
            if next(moments, moment) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*args, **options)

        return stand_in

    for name in FILE_OPERATIONS:
        setattr(os, name, mortal(getattr(os, name)))
    os.fdopen = HalvingFile  # type: ignore[assignment]


def kill_everywhere(place: Path, outcomes: Any) -> None:
    """Forks a run for every moment, kills it there, and resumes: (exit, answer left, what two resumed runs read)."""
    found: list[tuple[int, bytes | None, bytes, bytes]] = []
    while not found or found[-1][0] != 0:
        here = place / str(len(found))
        here.mkdir()
        journal = journal_in(here)
        child = os.fork()
        if child == 0:
            kill_at(len(found))
            journal.answer("counts", QUESTION, random_draw)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        left = (here / ANSWER).read_bytes() if (here / ANSWER).exists() else None
        resumed = journal.answer("counts", QUESTION, random_draw if left is None else never)
        found.append((status, left, resumed.tobytes(), journal.answer("counts", QUESTION, never).tobytes()))
    outcomes.put(found)


def test_a_kill_between_any_two_file_operations_leaves_no_answer_or_a_whole_one(tmp_path: Path) -> None:
    outcomes = PROCESSES.SimpleQueue()
    process = PROCESSES.Process(target=kill_everywhere, args=(tmp_path, outcomes))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    found: list[tuple[int, bytes | None, bytes, bytes]] = outcomes.get()
    assert len(found) > 15 and found[-1][0] == 0
    assert all(status == signal.SIGKILL for status, *_ in found[:-1])
    whole = [left for _, left, _, _ in found if left is not None]
    assert 3 <= len(whole) < len(found) - 10
    for _, left, resumed, again in found:
        assert resumed == again
        assert left is None or left.endswith(b"\n" + resumed)
