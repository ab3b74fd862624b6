"""Do the tests notice when the code is wrong? Breaks one line at a time and runs the tests that should fail.

Each mutation is a mistake that somebody could make, or an attacker could plant: in the privacy boundary, the reading
of records, the ledger, and in safety rules beside these (`mutated_*.py`). It is made in a copy of the package in a
temporary folder, never in the checkout. Prints a table: the mutation, and the first test that failed, or SURVIVED. A
few mutations change nothing that a caller could see; they are listed with the reason, and are not counted as survivors.
Ends with 1 if a mutation survived or its tests took too long, and with a message if one no longer fits the code.
What became of each is kept in `.soak/mutations.jsonl`. A run goes on where the last stopped: it leaves a mutation out
while the mutated file is the same, and one that was not noticed while its tests are the same, too. Delete the file to
try all. `--report` tries nothing and writes what is known to docs/ (see `mutation_report.py`).
A first run of every file of tests without a mutation notes which of them call which functions (see `reached.py`). A
mutation is tried on the quickest that call what it changes, then on all that its part names, then on the quickest of
other parts that call it.

    python tests/audits/mutations.py [--list LIST ...] [--survivors] [--only PART] [--processes 2] [--report]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mutation_report import ENDLESS, MEASURED, summary, verdict, write_report
from reached import First, Seen, Watch, chosen, function_at, read, seen_by

PROJECT = Path(__file__).resolve().parents[2]
TRIED, REACHED = PROJECT / ".soak" / "mutations.jsonl", PROJECT / ".soak" / "reached.json"
SECONDS, WATCHED_SECONDS = 120, 600  # of the processor
MEMORY, ROOM = Path("/dev/shm"), 6 * 2**30
PYTEST = ("-x", "-p", "no:xdist", "-p", "no:cacheprovider")
HERE = ("-m", "not soak and not audit and not outside")  # slow tests, too, which `make test` leaves to `make test-all`
OUTSIDE = ("-m", "not soak and not audit")  # tests of a second engine or with a server of objects, too
NEEDED_OUTSIDE = re.compile("spark|bucket|object_|dagster")  # in the names of their files
LISTS = ("boundary", "reading", "ledger")
LIBRARIES = ("numpy", "polars", "duckdb", "pyarrow.parquet", "scipy.stats", "numba", "sqlalchemy", "pydantic")


class Mutation(NamedTuple):
    """One change of the code.

    Attributes:
        old: text that occurs once in the file.
        new: what it becomes.
        why: what would go wrong.
        equivalent: why no caller can see the change; empty for a fault.
    """

    old: str
    new: str
    why: str
    equivalent: str = ""


class Part(NamedTuple):
    """The mutations of one file.

    Attributes:
        file: below the project.
        tests: test files, or tests in them, below `tests`, that should notice; run in this order until one fails.
        mutations: to try.
    """

    file: str
    tests: tuple[str, ...]
    mutations: tuple[Mutation, ...]


class MutationOutdated(Exception):
    """A mutation no longer fits the code."""

    def __init__(self, file: str, old: str, times: int) -> None:
        super().__init__(
            f"{file}: a mutation replaces the text below, which occurs {times} times there and must occur once. "
            f"Write the mutation anew, in tests/audits/mutated_*.py.\n{old}"
        )


def mutated(part: Part, mutation: Mutation, project: Path = PROJECT) -> str:
    """The text of a part's file with one mutation.

    Raises:
        MutationOutdated: the old text does not occur exactly once.
        SyntaxError: the new text is no Python.
    """
    text = (project / part.file).read_text(encoding="utf-8")
    if (times := text.count(mutation.old)) != 1:
        raise MutationOutdated(part.file, mutation.old, times)
    changed = text.replace(mutation.old, mutation.new)
    if part.file.endswith(".py"):
        compile(changed, part.file, "exec")
    return changed


class Ran(NamedTuple):
    """What became of a run of tests.

    Attributes:
        failed: the first test that failed; empty if all passed.
        cpu: seconds of the processor that it took, with all processes that the tests waited for.
    """

    failed: str
    cpu: float


def run_tests(copy: Path, tests: Iterable[str], plugins: Collection[object] = (), within: int = SECONDS) -> Ran:
    """Runs tests of a copy until one fails.

    Runs pytest in a fork of this process, which has loaded the large libraries already, and nothing of the package.

    Args:
        copy: the folder of a project.
        tests: files below its `tests`, or tests in them.
        plugins: of pytest.
        within: seconds of the processor, or eight times as many by the clock, after which the tests are ended.
    """
    # Beside the copy: what tests write below its pyproject.toml would be part of its project.
    shown, scratch = copy / "shown.txt", copy.with_name(f"{copy.name}_t")
    shown.unlink(missing_ok=True)
    scratch.mkdir(exist_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (within, within + 5))
        os.chdir(copy)
        os.environ |= {"PYTHONPATH": str(copy), "TMPDIR": str(scratch)}
        tempfile.tempdir = None  # as this process found it
        sys.path.insert(0, str(copy))
        for stream in (1, 2):
            os.dup2(os.open(shown, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        ended = 70
        with suppress(BaseException):
            marks = OUTSIDE if any(map(NEEDED_OUTSIDE.search, tests)) else HERE
            ended = int(pytest.main([*PYTEST, *marks, *(f"tests/{test}" for test in tests)], list(plugins)))
        sys.stdout.flush()
        os._exit(ended)
    until = time.monotonic() + 8 * within
    while (done := os.wait4(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # also whatever the tests left running
    if done[0] == 0:
        done = os.wait4(child, 0)
    shutil.rmtree(scratch, ignore_errors=True)  # a process that is ended so leaves its temporary files
    cpu = round(done[2].ru_utime + done[2].ru_stime, 1)
    if os.WIFSIGNALED(done[1]) and os.WTERMSIG(done[1]) in (signal.SIGXCPU, signal.SIGKILL):
        return Ran(f"{ENDLESS} {within} seconds", cpu)
    if done[1] == 0:
        return Ran("", cpu)
    told = shown.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(\S+\.py.*?)(?: - .*)?$", told, re.MULTILINE)
    return Ran(found[1] if found else f"pytest, which ended with {done[1]}: {told[-300:]}", cpu)


def fastest() -> Path | None:
    """Where copies are made: in memory, where there is room for what tests write, too; as in `conftest`."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM else None


_copy: list[Path] = []
_written: list[int] = [0]


def take_copy(folder: str) -> None:
    """Makes the copy of the project that this process breaks, which tests read as other users, too."""
    Path(folder).chmod(0o755)
    copy = Path(folder, str(os.getpid()))
    copy.mkdir()
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    for name in {path.partition("/")[0] for path in listed.split("\0") if path}:
        whole = PROJECT / name
        shutil.copytree(whole, copy / name) if whole.is_dir() else shutil.copy2(whole, copy)
    # Tests of the house ask Git which files there are.
    for command in (("init", "--quiet"), ("add", "--all")):
        subprocess.run(("git", *command), cwd=copy, check=True)
    _copy.append(copy)


def write(path: Path, content: bytes) -> None:
    """Writes a file with a time of its own: Python takes one of equal size and second for what it compiled."""
    _written[0] += 1
    path.write_bytes(content)
    os.utime(path, (10**9 + _written[0], 10**9 + _written[0]))


def outcome(part: Part, mutation: Mutation, seen: Mapping[str, Seen]) -> dict[str, Any]:
    """What became of one mutation, as a row of the table.

    Args:
        part: see there.
        mutation: of the part.
        seen: what each test does without it.
    """
    path, original = _copy[0] / part.file, (PROJECT / part.file).read_text(encoding="utf-8")
    function = function_at(original, mutation.old) if part.file.endswith(".py") else None
    first = chosen(seen, part.tests, part.file, function)
    try:
        write(path, mutated(part, mutation).encode())
        found = run_tests(_copy[0], part.tests, [First(first)])
        if not found.failed and function is not None and (others := chosen_others(seen, part, function)):
            files = dict.fromkeys(test.partition("::")[0].removeprefix("tests/") for test in others)
            more = run_tests(_copy[0], files, [First(others, alone=True)])
            found = Ran(more.failed, round(found.cpu + more.cpu, 1))
    finally:
        write(path, original.encode())
    tests = digest_of_files(part.tests)
    row = {"file": part.file, "noticed_by": found.failed, "cpu": found.cpu, "tests": tests, "date": str(date.today())}
    return row | mutation._asdict()


def chosen_others(seen: Mapping[str, Seen], part: Part, function: str) -> list[str]:
    """The quickest tests of other parts that call a function."""
    others = {test.partition("::")[0].removeprefix("tests/") for test in seen} - {
        test.partition("::")[0] for test in part.tests
    }
    return chosen(seen, tuple(sorted(others)), part.file, function)


def watched(test: str, files: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The first test of a file that fails without any mutation, and what each calls of some files; see `reached`."""
    kept = _copy[0] / "reached.json"
    kept.unlink(missing_ok=True)
    ran = run_tests(_copy[0], [test], [Watch(_copy[0], files, kept)], WATCHED_SECONDS)
    return ran.failed, read(kept)


class TestsFailAlready(Exception):
    """A test fails without any mutation, so that it could tell nothing."""


def reached(pool: ProcessPoolExecutor, parts: Collection[Part]) -> dict[str, Seen]:
    """What each test of parts calls: as an earlier run saw it while the file of the test was the same, or by a run.

    Raises:
        TestsFailAlready: with the name of the test.
    """
    tests = sorted({test.partition("::")[0] for part in parts for test in part.tests})
    files = sorted({part.file for part in selected("") if part.file.endswith(".py")})
    kept, names = read(REACHED), {test: digest_of_files([test]) for test in tests}
    running = {test: pool.submit(watched, test, files) for test in tests if names[test] not in kept}
    failing = []
    for test, run in running.items():
        failed, found = run.result()
        if failed:
            failing.append(failed)
            continue
        kept[names[test]] = found
        REACHED.parent.mkdir(exist_ok=True)
        REACHED.write_text(json.dumps(kept), encoding="utf-8")
    if failing:
        raise TestsFailAlready(", ".join(failing))
    return {name: one for test in tests for name, one in seen_by(kept[names[test]]).items()}


def digest_of_files(tests: Collection[str]) -> str:
    """What tells the files of tests from the same in another version."""
    paths = {PROJECT / "tests" / test.partition("::")[0] for test in tests}
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def digest(part: Part, mutation: Mutation) -> str:
    """What tells a mutation from all others, and from itself in another version of its file."""
    return hashlib.sha256(f"{part.file}\0{mutated(part, mutation)}".encode()).hexdigest()


def known(asked: Iterable[tuple[Part, Mutation]], before: bool = False) -> list[dict[str, Any] | None]:
    """The rows of mutations as earlier runs saw them; None for those that no run tried, or whose tests have changed.

    A test that noticed a mutation once is taken to do so for ever, since tests change more often than their meaning.

    Args:
        asked: the mutations.
        before: give the last row of other versions of their files or tests, too, marked so.
    """
    lines = TRIED.read_text(encoding="utf-8").splitlines() if TRIED.exists() else []
    tried = [json.loads(line) for line in lines]
    rows, others = {row["digest"]: row for row in tried}, {(row["file"], row["old"], row["new"]): row for row in tried}
    found: list[dict[str, Any] | None] = []
    for part, mutation in asked:
        row = rows.get(digest(part, mutation))
        if row and (verdict(row) == "noticed" or row["tests"] == digest_of_files(part.tests)):
            found.append({**row, **mutation._asdict()})
        else:
            other = others.get((part.file, mutation.old, mutation.new)) if before else None
            found.append({**other, **mutation._asdict(), "before": True} if other else None)
    return found


def tried(pool: ProcessPoolExecutor, asked: list[tuple[Part, Mutation]], at_once: bool) -> Iterator[dict[str, Any]]:
    """The rows of mutations in their order, those that were tried before without trying them again."""
    before = known(asked)
    left = [one for one, row in zip(asked, before, strict=True) if row is None]
    seen = {} if at_once else reached(pool, [part for part, _ in left])
    running = iter([(one, pool.submit(outcome, *one, seen)) for one in left])
    TRIED.parent.mkdir(exist_ok=True)
    for row in before:
        if row is None:
            one, run = next(running)
            row = run.result() | {"digest": digest(*one)}
            with TRIED.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        yield row


def parts(lists: Iterable[str] = LISTS) -> Iterator[Part]:
    """The mutations of some lists: a file for each, with the table of the same name in capitals."""
    for name in lists:
        yield from getattr(importlib.import_module(f"mutated_{name}"), name.upper())


def selected(only: str, lists: Iterable[str] = LISTS, among: Collection[str] | None = None) -> list[Part]:
    """The mutations of some lists whose `file: why` a regular expression finds.

    Args:
        among: of these names alone, each a `file: why`; None for all.
    """
    found = []
    for part in parts(lists):
        named = [(one, f"{part.file}: {one.why}") for one in part.mutations]
        asked = tuple(one for one, name in named if re.search(only, name) and (among is None or name in among))
        found += [part._replace(mutations=asked)] * bool(asked)
    return found


def survivors(project: Path = PROJECT) -> set[str]:
    """What the last report told as survived, now or before: a `file: why` each."""
    told = json.loads((project / MEASURED).read_text(encoding="utf-8"))["unnoticed"]
    return {f"{one['file']}: {one['why']}" for one in told if one["verdict"].startswith("survived")}


def main() -> int:
    """Tries the mutations, prints the table, and gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART", help="a regular expression for `file: mutation`")
    parser.add_argument("--list", action="append", choices=LISTS, help="mutations of this list; may be repeated")
    parser.add_argument("--survivors", action="store_true", help="only what the last report told as survived")
    parser.add_argument("--report", action="store_true", help="try nothing; write what is known to docs/")
    parser.add_argument("--processes", type=int, default=2, help="mutations that are tried at once")
    parser.add_argument("--at-once", action="store_true", help="run no test without a mutation: all tests, not chosen")
    options = parser.parse_args()
    parts = selected(options.only, options.list or LISTS, survivors() if options.survivors else None)
    try:
        for part in parts:
            for mutation in part.mutations:
                mutated(part, mutation)
    except MutationOutdated as error:
        print(error, file=sys.stderr)
        return 2
    asked = [(part, one) for part in parts for one in part.mutations]
    if options.report:
        write_report(PROJECT, summary(known(asked, before=True), [part.file for part, _ in asked]))
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="mutations_", dir=fastest()) as folder,
        ProcessPoolExecutor(options.processes, get_context("fork"), take_copy, (folder,)) as pool,
    ):
        print("| file | mutation | noticed by |\n|---|---|---|", flush=True)
        rows = []
        try:
            for row in tried(pool, asked, options.at_once):
                told = row["noticed_by"] or (f"equivalent: {row['equivalent']}" if row["equivalent"] else "SURVIVED")
                print(f"| {row['file'].removeprefix('dphist_pipeline/')} | {row['why']} | {told} |", flush=True)
                rows.append(row)
        except TestsFailAlready as error:
            print(f"without any mutation, this test fails already: {error}", file=sys.stderr)
            return 2
    verdicts = Counter(map(verdict, rows))
    print(f"\n{len(rows)} mutations: " + ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items()))
    return int(verdicts["survived"] + verdicts["not within the limit"] > 0)


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    sys.modules["mutations"] = sys.modules["__main__"]
    sys.exit(main())
