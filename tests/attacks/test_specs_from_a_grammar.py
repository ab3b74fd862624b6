"""Whole specs from an attacker's grammar: whatever they ask for, nothing of the records is told but through noise."""

from __future__ import annotations

import fcntl
import json
import os
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from attacked_noise import large_noise
from attacked_office import AttackedOffice, Manner
from spec_grammar import attack

from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential import _table_counts as table_counts
from dphist_pipeline.confidential import cube, measurements, row_tables
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading.source import SourceRefused
from dphist_pipeline.publishing import release_files
from dphist_pipeline.releasing import _plans as plans
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.run import Run
from dphist_pipeline.spec import _code_lists, _query_files, model, sources
from dphist_pipeline.spec.mistakes import MistakesError
from dphist_pipeline.spec.sources import CodeListFolders
from examples import mostly_soaked

SEED, SPECS, SECONDS = 174, 20, 1200
FEWEST_RELEASES = 0.15
# Other commands, and with what share of the specs they run.
BEFORE = {
    ("check",): 1.0,
    ("check", "--explain"): 0.5,
    ("check", "--explain", "--json"): 0.1,
    ("rehearse", "--rows", "40"): 0.02,
    ("forecast", "--repeat", "1", "--mechanism", "geometric"): 0.04,
}
AFTER = {
    ("quality",): 0.1,
    ("plot", "--output", "plot.svg", "--overwrite"): 0.05,
    ("export", "--to", "csv", "--overwrite"): 0.1,
    ("answer",): 0.1,
}
# The first is a share of all specs, the second of those that are published.
COMPARED, AGAIN, DRESSED = 0.1, 0.2, 0.5
SPECS_OF_A_STORE = 50
# How far long runs came: the next of them goes on there, and several may run at once.
PROGRESS = Path(__file__).resolve().parents[2] / ".soak" / "specs_from_a_grammar.json"
LONG = 100_000


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedOffice]:
    folder = tmp_path_factory.mktemp("attacked")
    with pytest.MonkeyPatch.context() as patch, large_noise():
        for name in ("DPHIST_STORE", "DPHIST_LEDGER", "DPHIST_WITNESS", "DPHIST_OPERATOR_KEY", "DPHIST_DEBUG"):
            patch.delenv(name, raising=False)
        made = AttackedOffice(folder)
        patch.chdir(made.office.folder)
        yield made


@pytest.fixture
def attacked(made_once: AttackedOffice) -> Iterator[AttackedOffice]:
    made_once.renew()
    yield made_once


def findings_of(
    attacked: AttackedOffice, seed: int, numbers: range, seconds: float = SECONDS, thorough: float = 1.0
) -> tuple[Counter[str], list[str]]:
    """How specs of the grammar ended, and what the first of them that went wrong did.

    Args:
        attacked: the office.
        seed: of all specs.
        numbers: of the specs; each number makes the same spec whatever was tried before.
        seconds: to begin no spec after.
        thorough: what other commands and cards are run with, of their shares.
    """
    outcomes, started = Counter[str](), time.monotonic()
    for number in numbers:
        if time.monotonic() - started > seconds:
            break
        choice = random.Random(f"{seed} {number}")
        made = attack(choice, number)
        tried = attacked.tried(made, manner_of(choice, thorough))
        outcomes[tried.outcome] += 1
        if tried.findings:
            return outcomes, [f"seed {seed}, spec {number}: {made}", *tried.findings]
        if number % SPECS_OF_A_STORE == SPECS_OF_A_STORE - 1:
            if found := attacked.in_the_end():
                return outcomes, [f"seed {seed}, up to spec {number}", *found]
            attacked.renew()
            if number == numbers[-1]:
                return outcomes, []
    return outcomes, attacked.in_the_end()


def manner_of(choice: random.Random, thorough: float) -> Manner:
    """In what manner a spec is tried, drawn after the spec itself."""
    before, after = (
        [words for words, share in more.items() if choice.random() < share * thorough] for more in (BEFORE, AFTER)
    )
    again, dressed, compared = (choice.random() < share for share in (AGAIN, DRESSED * thorough, COMPARED))
    return Manner(before, again, after, dressed, compared)


@pytest.mark.slow
def test_no_spec_of_the_grammar_tells_more_than_its_noise(attacked: AttackedOffice) -> None:
    outcomes, findings = findings_of(attacked, SEED, range(SPECS))
    print(f"\n{sum(outcomes.values())} specs: {dict(outcomes)}")
    assert findings == []
    assert outcomes["released"] >= FEWEST_RELEASES * sum(outcomes.values())


@pytest.mark.soak
def test_no_spec_of_the_grammar_tells_more_than_its_noise_in_long_runs(attacked: AttackedOffice) -> None:
    """Until all are tried, in as many runs as that takes; delete the file of the progress to begin anew."""
    until = time.monotonic() + float(os.environ.get("DPHIST_SOAK_SECONDS", "3600"))
    outcomes = Counter[str]()
    while time.monotonic() < until and (claimed := next_specs()):
        (seed, numbers), begun = claimed, time.process_time()
        here, findings = findings_of(attacked, seed, numbers, until - time.monotonic() + SECONDS, thorough=0.3)
        outcomes += here
        spent = {"processor_seconds": round(time.process_time() - begun)}
        note_progress({"findings": findings} if findings else {"tried": len(numbers), **here, **spent})
        assert findings == []
    print(f"\n{sum(outcomes.values())} specs: {dict(outcomes)}; all runs together: {PROGRESS.read_text()}")
    assert outcomes["released"] >= FEWEST_RELEASES * sum(outcomes.values())


def next_specs() -> tuple[int, range] | None:
    """The seed of all long runs, and numbers of specs that nobody has begun; None once enough specs were tried.

    What a run had begun when it was killed stays untried.
    """
    state = note_progress({"begun": SPECS_OF_A_STORE})
    begin = state["begun"] - SPECS_OF_A_STORE
    return (state["seed"], range(begin, begin + SPECS_OF_A_STORE)) if state.get("tried", 0) < LONG else None


def note_progress(more: Mapping[str, Any]) -> dict[str, Any]:
    """Adds numbers, or lists, to those in the file of the progress, one process at a time, and gives all of them."""
    PROGRESS.parent.mkdir(exist_ok=True)
    with PROGRESS.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        state: dict[str, Any] = json.loads(file.read() or "{}") or {"seed": secrets.randbits(32), "begun": 0}
        for name, value in more.items():
            state[name] = state.get(name, type(value)()) + value
        file.truncate(0)
        file.write(json.dumps(state, indent=1))
    return state


# Planted leaks.


def rows_told(run: Run, folder: Path, frame: Any, count: Any = Run.count) -> Path:
    if Path(run.spec.source_pattern).suffix == ".parquet" and Path(run.spec.source_pattern).is_file():
        rows = pq.ParquetFile(run.spec.source_pattern).metadata.num_rows
        run.progress(f"reading {rows:,} records")
    made: Path = count(run, folder, frame)
    return made


def any_list(file: Path, rule: CodeListFolders) -> Path:
    return file.resolve(strict=True)


def any_row_count(staged: Path, cells: int, max_rows: int, key: bytes, distinct: bool = False) -> np.ndarray:
    return np.bincount(pl.read_parquet(staged)["code"].drop_nulls(), minlength=cells).astype(np.int64)


def any_rows(plan: Any, staged: Path, names: list[str], key: bytes) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rows = pl.read_parquet(staged).select(names).drop_nulls().to_numpy().T
    yield rows, np.ones(rows.shape[1], dtype=np.int64)


def twice_as_many(staged: Path, words: Any, most: int, key: bytes, kept: Any = row_tables.kept_words) -> Any:
    return kept(staged, words, 2 * most, key)


def half_a_charge(whole: Any = plans.ChargeRequest, **asked: Any) -> Any:
    return whole(**{**asked, "epsilon": asked["epsilon"] / 2})


def value_quoted(file: Path, name: str, *more: Any, read: Any = _code_lists.read_rows) -> Any:
    try:
        return read(file, name, *more)
    except MistakesError as mistakes:
        near = file.read_bytes()[:200] if file.is_file() else b""
        raise MistakesError([(at, f"{what} near {near!r}") for at, what in mistakes.found]) from None


def footer_of_rows(estimate: Any, staging: Path, write: Any = release_files.write_histogram) -> None:
    """A footer that tells how many records were read."""
    write(estimate, staging)
    table = pq.read_table(staging)
    rows = pq.ParquetFile("data/health.parquet").metadata.num_rows
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), "rows": str(rows)}), staging)


def few_refused(plan: Any, folder: Path, read: Any = ingest.stage_rows) -> Path:
    """Refuses what has few records, which tells that they are few."""
    staged: Path = read(plan, folder)
    if pq.ParquetFile(staged).metadata.num_rows < 100:
        raise SourceRefused(plan.source.written, "has too few records")
    return staged


# What is planted, what is found of it, and the spec that finds it: the first after any change of the grammar is printed
# by the long test below.
PLANTED: dict[str, tuple[str, int, Callable[[], Any]]] = {
    "a step that tells the number of rows": (
        "the exact count",
        3,
        lambda: patch.object(Run, "count", rows_told),
    ),
    "counts without noise": (
        "the exact count",
        6,
        lambda: patch.object(measurements, "_noisy", lambda exact, scale: exact),
    ),
    "code lists read anywhere": ("the token", 21, lambda: patch.object(sources, "_allowed_path", any_list)),
    "templates in every field": (
        "the token",
        12,
        lambda: patch.object(model, "ADDRESSES", tuple(ReleaseSpec.model_fields)),
    ),
    "queries that need no decision": (
        "one unit moves counts",
        103,
        lambda: patch.object(plans, "_query_of", lambda spec: {}),
    ),
    "sources that need no decision": (
        "for account",
        160,
        lambda: patch.object(Reading, "differences", lambda asked, allowed: []),
    ),
    "no bounding": ("one unit moves counts", 10, lambda: patch.object(cube, "count_bounded", any_row_count)),
    "half of epsilon charged": (
        "for a release of epsilon",
        1,
        lambda: patch.object(plans, "ChargeRequest", half_a_charge),
    ),
    "a message that quotes a file": ("the token", 175, lambda: patch.object(_query_files, "read_rows", value_quoted)),
    "a footer that tells the number of rows": (
        "the exact count",
        1,
        lambda: patch.object(release_files, "write_histogram", footer_of_rows),
    ),
    "a refusal of few records": (
        "in an office with a handful of records",
        42,
        lambda: patch.object(ingest, "stage_rows", few_refused),
    ),
    "a quality table that sees more rows": (
        "one unit moves rows_by_place",
        345,
        lambda: patch.object(row_tables, "kept_words", twice_as_many),
    ),
    "a family that counts more rows": (
        "one unit moves counts",
        127,
        lambda: patch.object(table_counts, "_row_words", any_rows),
    ),
}
FIRST_TRIED = 600
SLOW = ("a step that tells the number of rows", "code lists read anywhere", "a refusal of few records")


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_soaked(PLANTED, [i for i, name in enumerate(PLANTED) if name not in SLOW]))
def test_a_planted_leak_is_found_by_its_spec(attacked: AttackedOffice, name: str) -> None:
    expected, number, planted = PLANTED[name]
    with planted():
        _, findings = findings_of(attacked, SEED, range(number, number + 1))
    assert any(expected in finding for finding in findings[1:]), findings


@pytest.mark.soak
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_leak_is_found_by_some_hundred_specs(attacked: AttackedOffice, name: str) -> None:
    expected, _, planted = PLANTED[name]
    with planted():
        outcomes, findings = findings_of(attacked, SEED, range(FIRST_TRIED))
    print(f"\nfound after {sum(outcomes.values())} specs: {findings[1:]}")
    assert any(expected in finding for finding in findings[1:]), findings
