"""Do the tests notice when the code is wrong? Breaks one line at a time and runs the tests that should fail.

Each mutation is a mistake that somebody could make, or an attacker could plant, in the room, the ledger or the answers
(see `mutated_room`, `mutated_ledger` and `mutated_answers`). It is made in a copy of the package in a temporary folder,
never in the checkout. Prints a table: the mutation, and the first test that failed, or SURVIVED. A few mutations change
nothing that a caller could see; they are listed with the reason, and are not counted as survivors.
Ends with 1 if a mutation survived or its tests did not end, and with a message if one no longer fits the code.
What was noticed is kept in `.soak/mutations.jsonl`: a run goes on where the last one stopped, and leaves it out while
the mutated file is the same. Delete the file, for instance after tests were changed, to try all.
A first run of the tests without a mutation notes which of them call which functions (see `reached.py`). A mutation is
tried on the quickest that call what it changes, and only if they miss it on all that its part names.

    python tests/audits/mutations.py [--only PART] [--json FILE] [--processes 2]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reached import Chosen, Seen, Watch, chosen, function_at, read, seen_by

PROJECT = Path(__file__).resolve().parents[2]
NOTICED, REACHED = PROJECT / ".soak" / "mutations.jsonl", PROJECT / ".soak" / "reached.json"
COPIED = ("dphist_pipeline", "sql", "tests", "dagster_project", "pyproject.toml")
SECONDS, WATCHED_SECONDS = 300, 1500
ENDLESS = "no test, but they did not end"
PYTEST = ("-x", "-p", "no:xdist", "-p", "no:cacheprovider")
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


def failing_test(copy: Path, tests: Iterable[str], plugins: Collection[object] = (), within: int = SECONDS) -> str:
    """The first test of a copy that fails; empty if all pass.

    Runs pytest in a fork of this process, which has loaded the large libraries already, and nothing of the package.

    Args:
        copy: the folder of a project.
        tests: files below its `tests`, or tests in them.
        plugins: of pytest.
        within: seconds, after which the tests are ended.
    """
    shown = copy / "shown.txt"
    shown.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy)
        sys.path.insert(0, str(copy))
        for stream in (1, 2):
            os.dup2(os.open(shown, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        ended = 70
        with suppress(BaseException):
            ended = int(pytest.main([*PYTEST, *(f"tests/{test}" for test in tests)], list(plugins)))
        sys.stdout.flush()
        os._exit(ended)
    until = time.monotonic() + within
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # also whatever the tests left running
    if done[0] == 0:
        os.waitpid(child, 0)
        return f"{ENDLESS} within {within} seconds"
    if done[1] == 0:
        return ""
    told = shown.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(\S+)", told, re.MULTILINE)
    return found[1] if found else f"pytest, which ended with {done[1]}: {told[-300:]}"


_copy: list[Path] = []


def take_copy(folder: str) -> None:
    """Makes the copy of the project that this process breaks."""
    copy = Path(folder, str(os.getpid()))
    copy.mkdir()
    for name in COPIED:
        whole = PROJECT / name
        shutil.copytree(whole, copy / name) if whole.is_dir() else shutil.copy2(whole, copy)
    _copy.append(copy)


def outcome(part: Part, mutation: Mutation, seen: Mapping[str, Seen]) -> dict[str, Any]:
    """What became of one mutation, as a row of the table.

    Args:
        part: see there.
        mutation: of the part.
        seen: what each test does without it.
    """
    path, started = _copy[0] / part.file, time.monotonic()
    original = path.read_bytes()
    first = quickest(part, mutation, seen)
    try:
        path.write_text(mutated(part, mutation, _copy[0]), encoding="utf-8")
        files = dict.fromkeys(test.partition("::")[0].removeprefix("tests/") for test in first)
        noticed = failing_test(_copy[0], files, [Chosen(first)]) if first else ""
        noticed = noticed or failing_test(_copy[0], part.tests)
    finally:
        path.write_bytes(original)
    seconds = round(time.monotonic() - started, 1)
    return {"file": part.file, "noticed_by": noticed, "seconds": seconds} | mutation._asdict()


def quickest(part: Part, mutation: Mutation, seen: Mapping[str, Seen]) -> list[str]:
    """The tests that a mutation is tried on first; none where nothing is known of what they call."""
    if not part.file.endswith(".py"):
        return []
    text = (PROJECT / part.file).read_text(encoding="utf-8")
    return chosen(seen, part.file, function_at(text, mutation.old))


def watched(tests: tuple[str, ...], files: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The first of some tests that fails without any mutation, and what each calls of these files; see `reached`."""
    kept = _copy[0] / "reached.json"
    kept.unlink(missing_ok=True)
    failed = failing_test(_copy[0], tests, [Watch(_copy[0], files, kept)], WATCHED_SECONDS)
    return failed, read(kept)


class TestsFailAlready(Exception):
    """A test fails without any mutation, so that it could tell nothing."""


def reached(pool: ProcessPoolExecutor, parts: Collection[Part]) -> dict[tuple[str, ...], dict[str, Seen]]:
    """By the tests of parts, what each of them calls: as an earlier run saw it, or by a run.

    Raises:
        TestsFailAlready: with the name of the test.
    """
    files = {part.tests: {other.file for other in parts if other.tests == part.tests} for part in parts}
    kept = read(REACHED)
    names = {tests: digest_of_tests(tests, of) for tests, of in files.items()}
    running = {tests: pool.submit(watched, tests, files[tests]) for tests in files if names[tests] not in kept}
    for tests, run in running.items():
        failed, kept[names[tests]] = run.result()
        if failed:
            raise TestsFailAlready(failed)
        REACHED.parent.mkdir(exist_ok=True)
        REACHED.write_text(json.dumps(kept), encoding="utf-8")
    return {tests: seen_by(kept[name]) for tests, name in names.items()}


def digest_of_tests(tests: Collection[str], files: Collection[str]) -> str:
    """What tells tests and the files that they are watched with from the same in another version."""
    paths = {PROJECT / "tests" / test.partition("::")[0] for test in tests} | {PROJECT / file for file in files}
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def verdict(row: dict[str, Any]) -> str:
    """What a row of the table counts as."""
    if row["noticed_by"].startswith(ENDLESS):
        return "endless"
    if row["noticed_by"]:
        return "noticed"
    return "equivalent" if row["equivalent"] else "survived"


def digest(part: Part, mutation: Mutation) -> str:
    """What tells a mutation from all others, and from itself in another version of its file."""
    return hashlib.sha256(f"{part.file}\0{mutated(part, mutation)}".encode()).hexdigest()


def noticed_before() -> dict[str, dict[str, Any]]:
    """The rows of mutations that earlier runs saw noticed, by digest."""
    lines = NOTICED.read_text(encoding="utf-8").splitlines() if NOTICED.exists() else []
    return {row["digest"]: row for row in map(json.loads, lines)}


def tried(pool: ProcessPoolExecutor, asked: list[tuple[Part, Mutation]], at_once: bool) -> Iterator[dict[str, Any]]:
    """The rows of mutations in their order, those that were noticed before without trying them again."""
    before, digests = noticed_before(), [digest(*one) for one in asked]
    left = [one for one, name in zip(asked, digests, strict=True) if name not in before]
    seen = {} if at_once else reached(pool, list({(part.file, part.tests): part for part, _ in left}.values()))
    waiting = [pool.submit(outcome, part, mutation, seen.get(part.tests, {})) for part, mutation in left]
    NOTICED.parent.mkdir(exist_ok=True)
    running = iter(waiting)
    for name in digests:
        if name in before:
            yield before[name]
            continue
        row = next(running).result() | {"digest": name}
        if verdict(row) == "noticed":
            with NOTICED.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        yield row


def selected(only: str) -> list[Part]:
    """The mutations whose `file: why` a regular expression finds."""
    from mutated_answers import ANSWERS
    from mutated_ledger import LEDGER
    from mutated_room import ROOM

    found = []
    for part in (*ROOM, *LEDGER, *ANSWERS):
        asked = tuple(one for one in part.mutations if re.search(only, f"{part.file}: {one.why}"))
        found += [part._replace(mutations=asked)] * bool(asked)
    return found


def main() -> int:
    """Tries the mutations, prints the table, and gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART", help="a regular expression for `file: mutation`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument("--processes", type=int, default=2, help="mutations that are tried at once")
    parser.add_argument("--at-once", action="store_true", help="run no test without a mutation: all tests, not chosen")
    options = parser.parse_args()
    parts = selected(options.only)
    try:
        for part in parts:
            for mutation in part.mutations:
                mutated(part, mutation)
    except MutationOutdated as error:
        print(error, file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory(prefix="mutations_") as folder,
        ProcessPoolExecutor(options.processes, get_context("fork"), take_copy, (folder,)) as pool,
    ):
        print("| file | mutation | noticed by |\n|---|---|---|", flush=True)
        rows = []
        try:
            for row in tried(pool, [(part, one) for part in parts for one in part.mutations], options.at_once):
                told = row["noticed_by"] or (f"equivalent: {row['equivalent']}" if row["equivalent"] else "SURVIVED")
                print(f"| {row['file'].removeprefix('dphist_pipeline/')} | {row['why']} | {told} |", flush=True)
                rows.append(row)
        except TestsFailAlready as error:
            print(f"without any mutation, this test fails already: {error}", file=sys.stderr)
            return 2
    verdicts = Counter(map(verdict, rows))
    print(f"\n{len(rows)} mutations: " + ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(verdicts["survived"] + verdicts["endless"] > 0)


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    sys.modules["mutations"] = sys.modules["__main__"]
    sys.exit(main())
