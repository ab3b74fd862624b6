"""Do the tests notice when the code is wrong? Breaks one line at a time and runs the tests that should fail.

Each mutation is a mistake that somebody could make, or an attacker could plant, in the room, the ledger or the answers
(see `mutated_room`, `mutated_ledger` and `mutated_answers`). It is made in a copy of the package in a temporary folder,
never in the checkout. Prints a table: the mutation, and the first test that failed, or SURVIVED. A few mutations change
nothing that a caller could see; they are listed with the reason, and are not counted as survivors.
Ends with 1 if a mutation survived, and with a message if one no longer fits the code.

    python tests/audits/mutations.py [--only PART] [--json FILE] [--processes 2]
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
COPIED = ("dphist_pipeline", "sql", "tests", "dagster_project", "pyproject.toml")
SECONDS = 300
PYTEST = (sys.executable, "-m", "pytest", "-x", "-p", "no:xdist", "-p", "no:cacheprovider")


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
        tests: test files that should notice, below `tests`, run in this order until one fails.
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


def failing_test(copy: Path, tests: Iterable[str]) -> str:
    """The first test of a copy that fails; empty if all pass."""
    paths = [f"tests/{test}" for test in tests]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    try:
        run = subprocess.run(
            [*PYTEST, *paths], cwd=copy, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no test, but none ended within {SECONDS} seconds"
    if run.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", run.stdout, re.MULTILINE)
    return found[1] if found else f"pytest ended with {run.returncode}: {run.stdout[-300:]}{run.stderr[-300:]}"


@contextmanager
def copies(number: int) -> Iterator[queue.SimpleQueue[Path]]:
    """Copies of the project in a temporary folder."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutations_") as folder:
        for place in (Path(folder, str(one)) for one in range(number)):
            place.mkdir()
            for name in COPIED:
                whole = PROJECT / name
                shutil.copytree(whole, place / name) if whole.is_dir() else shutil.copy2(whole, place)
            free.put(place)
        yield free


def outcome(part: Part, mutation: Mutation, free: queue.SimpleQueue[Path]) -> dict[str, Any]:
    """What became of one mutation, as a row of the table."""
    copy, started = free.get(), time.monotonic()
    path = copy / part.file
    original = path.read_bytes()
    try:
        path.write_text(mutated(part, mutation, copy), encoding="utf-8")
        noticed = failing_test(copy, part.tests)
    finally:
        path.write_bytes(original)
        free.put(copy)
    row = {"file": part.file, **mutation._asdict(), "noticed_by": noticed}
    verdict = noticed or ("equivalent: " + mutation.equivalent if mutation.equivalent else "SURVIVED")
    print(f"| {part.file.removeprefix('dphist_pipeline/')} | {mutation.why} | {verdict} |", flush=True)
    return row | {"seconds": round(time.monotonic() - started, 1)}


def selected(only: str) -> list[Part]:
    """The parts whose file's name holds a text."""
    from mutated_answers import ANSWERS
    from mutated_ledger import LEDGER
    from mutated_room import ROOM

    return [part for part in (*ROOM, *LEDGER, *ANSWERS) if only in part.file]


def main() -> int:
    """Tries the mutations, prints the table, and gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PART", help="files whose path holds this text")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument("--processes", type=int, default=2, help="mutations that are tried at once")
    options = parser.parse_args()
    parts = selected(options.only)
    try:
        for part in parts:
            for mutation in part.mutations:
                mutated(part, mutation)
    except MutationOutdated as error:
        print(error, file=sys.stderr)
        return 2
    with copies(options.processes) as free, ThreadPoolExecutor(options.processes) as pool:
        copy = free.get()
        broken = failing_test(copy, dict.fromkeys(test for part in parts for test in part.tests))
        free.put(copy)
        if broken:
            print(f"without any mutation, this test fails already: {broken}", file=sys.stderr)
            return 2
        print("| file | mutation | noticed by |\n|---|---|---|")
        tried = [pool.submit(outcome, part, mutation, free) for part in parts for mutation in part.mutations]
        rows = [one.result() for one in tried]
    verdicts = Counter(
        "noticed" if row["noticed_by"] else "equivalent" if row["equivalent"] else "survived" for row in rows
    )
    print(f"\n{len(rows)} mutations: " + ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(verdicts["survived"] > 0)


if __name__ == "__main__":
    sys.modules["mutations"] = sys.modules["__main__"]
    sys.exit(main())
