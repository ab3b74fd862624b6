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
from office import Office
from spec_grammar import attack

from dphist_pipeline.confidential import cube, doors
from dphist_pipeline.ledger.decisions import SourceReading
from dphist_pipeline.releasing import plans, stages
from dphist_pipeline.spec import code_list_files, loading, row_queries
from dphist_pipeline.spec.code_lists import CodeListFolders
from dphist_pipeline.spec.model import ReleaseSpec

SEED, SPECS, SECONDS = 174, 30, 1200
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
# Of all specs; of those that are published.
COMPARED, AGAIN, DRESSED = 0.1, 0.2, 0.5
SPECS_OF_A_STORE = 50
# How far long runs came: the next of them goes on there, and several may run at once.
PROGRESS = Path(__file__).resolve().parents[2] / ".soak" / "specs_from_a_grammar.json"
LONG = 100_000


@pytest.fixture
def attacked(office: Office) -> Iterator[AttackedOffice]:
    with large_noise():
        yield AttackedOffice(office.folder.parent)


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
        seed, numbers = claimed
        here, findings = findings_of(attacked, seed, numbers, until - time.monotonic() + SECONDS, thorough=0.3)
        outcomes += here
        note_progress({"findings": findings} if findings else {"tried": len(numbers), **here})
        assert findings == []
    print(f"\n{sum(outcomes.values())} specs: {dict(outcomes)}; all runs together: {PROGRESS.read_text()}")
    assert outcomes["released"] >= FEWEST_RELEASES * sum(outcomes.values())


def next_specs() -> tuple[int, range] | None:
    """The seed of all long runs, and the numbers of the specs that nobody has begun; None once all are."""
    state = note_progress({"begun": SPECS_OF_A_STORE})
    begin = state["begun"] - SPECS_OF_A_STORE
    return (state["seed"], range(begin, begin + SPECS_OF_A_STORE)) if begin < LONG else None


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


def rows_told(attempt: stages.Attempt, folder: Path, write: Any = stages.write_cube) -> Path:
    if attempt.spec.source_format == "parquet":
        rows = pq.ParquetFile(attempt.spec.source_pattern).metadata.num_rows
        attempt.progress(f"reading {rows:,} records")
    made: Path = write(attempt, folder)
    return made


def any_list(file: Path, rule: CodeListFolders) -> Path:
    return file.resolve(strict=True)


def any_row_count(staged: Path, cells: int, max_rows: int, key: bytes) -> np.ndarray:
    return np.bincount(pl.read_parquet(staged)["code"], minlength=cells).astype(np.int64)


def half_a_charge(whole: Any = plans.ChargeRequest, **asked: Any) -> Any:
    return whole(**{**asked, "epsilon": asked["epsilon"] / 2})


PLANTED: dict[str, tuple[str, Callable[[], Any]]] = {
    "a step that tells the number of rows": ("the exact count", lambda: patch.object(stages, "write_cube", rows_told)),
    "counts without noise": ("the exact count", lambda: patch.object(doors, "_noisy", lambda exact, scale: exact)),
    "code lists read anywhere": ("the token", lambda: patch.object(code_list_files, "_allowed", any_list)),
    "templates in every field": (
        "the token",
        lambda: patch.object(loading, "ADDRESSES", tuple(ReleaseSpec.model_fields)),
    ),
    "a query that makes its own units": (
        "one unit moves counts",
        lambda: patch.object(row_queries, "_check_unit", lambda items, unit: None),
    ),
    "queries that need no decision": (
        "one unit moves counts",
        lambda: patch.object(plans, "_query_of", lambda spec: {}),
    ),
    "sources that need no decision": (
        "for account",
        lambda: patch.object(SourceReading, "differences", lambda asked, allowed: []),
    ),
    "no bounding": ("one unit moves counts", lambda: patch.object(cube, "count_bounded", any_row_count)),
    "half of epsilon charged": (
        "for a release of epsilon",
        lambda: patch.object(plans, "ChargeRequest", half_a_charge),
    ),
}


QUICK = ("half of epsilon charged",)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.soak) for name in PLANTED]
)
def test_a_planted_leak_is_found_by_the_default_number_of_specs(attacked: AttackedOffice, name: str) -> None:
    expected, planted = PLANTED[name]
    with planted():
        outcomes, findings = findings_of(attacked, SEED, range(SPECS))
    print(f"\nfound after {sum(outcomes.values())} specs: {findings[1:]}")
    assert any(expected in finding for finding in findings[1:]), findings
