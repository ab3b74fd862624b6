"""What must hold inside the privacy boundary of an attacked office: charges, draws, noise, and what was read."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from attacked_accounts import ACCOUNTS, Reading
from attacked_noise import sensitivity_of, sensitivity_of_rows
from one_engine import one_engine
from spec_parts import Attack

from dphist_pipeline.confidential import cube, row_tables
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.row_queries import ObservedRows
from dphist_pipeline.releasing import release as verbs
from dphist_pipeline.releasing import run as run_module

KEY = bytes(range(32))
# The weights of the sums that are asked for: public, and kept since another machine may find others.
FREE = {"door": "weights", "epsilon": "0", "scale": "0", "partition": ""}


@dataclass
class Seen:
    """What one run of `dphist release` did inside the privacy boundary.

    Attributes:
        begun: whether its spec was accepted.
        plans: what was read.
        exact: counts that were loaded.
        rows: exact numbers about rows, for quality tables.
        draws: how often each step of each charge was drawn.
        questions: what measurements were asked, by charge and step.
    """

    begun: bool = False
    plans: list[CountingPlan] = field(default_factory=list)
    exact: list[np.ndarray] = field(default_factory=list)
    rows: list[ObservedRows] = field(default_factory=list)
    draws: Counter[tuple[str, str]] = field(default_factory=Counter)
    questions: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)


@contextmanager
def watched(seen: Seen) -> Iterator[None]:
    """Keeps what is read, counted and drawn."""
    read, answer, release = run_module.read_cube, Journal.answer, verbs.release
    stage, save = ingest.stage_rows, row_tables.save

    def released(*given: Any, **more: Any) -> Any:
        seen.begun = True
        return release(*given, **more)

    def staged(plan: CountingPlan, folder: Path) -> Path:
        seen.plans.append(plan)
        return stage(plan, folder)

    def counted(path: Path) -> np.ndarray:
        seen.exact.append(read(path))
        return seen.exact[-1]

    def saved(rows: ObservedRows, folder: Path) -> None:
        seen.rows.append(rows)
        save(rows, folder)

    def answered(journal: Journal, step: str, question: Mapping[str, str], draw: Callable[[], Any]) -> Any:
        key = (journal._charge, step)

        def drawn() -> Any:
            seen.draws[key] += 1
            return draw()

        seen.questions[key] = dict(question)
        return answer(journal, step, question, drawn)

    with ExitStack() as stack:
        stack.enter_context(patch.object(verbs, "release", released))
        stack.enter_context(patch.object(ingest, "stage_rows", staged))
        stack.enter_context(patch.object(run_module, "read_cube", counted))
        stack.enter_context(patch.object(row_tables, "save", saved))
        stack.enter_context(patch.object(Journal, "answer", answered))
        stack.enter_context(patch.object(cube, "secrets", SimpleNamespace(token_bytes=lambda size: KEY[:size])))
        yield


def wrong_noise(attack: Attack, audits: list[Path], seen: Seen, epsilon: Fraction) -> list[str]:
    """What is wrong with what measurements spent, and with the audits of the release."""
    sensitivity, found = sensitivity_of(attack), []
    asked = [(Fraction(question["epsilon"]), question) for question in seen.questions.values()]
    if sum(spent for spent, _ in asked) > epsilon:
        found.append("its measurements spent more than was charged")
    for spent, question in asked:
        if question == FREE:
            continue
        moves = sensitivity_of_rows(attack).get(question["door"], sensitivity)
        if question["door"] != "choose" and Fraction(question["scale"]) * spent < moves:
            found.append(f"{question} has too little noise for a sensitivity of {moves}")
    for audit in (json.loads(path.read_bytes()) for path in audits):
        told = (audit["account"], Fraction(audit["epsilon"]), audit["sensitivity"])
        # The audit of a family, in the folder above its tables, holds the charges of all of them.
        steps = sum(Fraction(step["epsilon"]) for step in audit.get("charges", [{"epsilon": audit["epsilon"]}]))
        if told != (attack.spec["account"], epsilon, sensitivity) or steps != epsilon:
            found.append(f"its audit states {told} and {audit.get('charges')}")
    return found


class Readings:
    """What may be read, and how far one unit may move counts.

    Args:
        office: the folder of the office.
        neighbour: the folder of its neighbour, which lacks one unit or has another in its place.
    """

    def __init__(self, office: Path, neighbour: Path) -> None:
        self._office, self._neighbour, self._near = office, neighbour, set[bytes]()

    def wrong(self, attack: Attack, seen: Seen) -> list[str]:
        """What was read that no operator allowed, and units that move counts further than was declared."""
        found = []
        for plan in seen.plans:
            account = str(attack.spec.get("account"))
            reading, data = plan.source.reading, self._office.resolve() / "data"
            asked = Reading(
                reading.format,
                plan.privacy_unit.columns,
                reading.unit_normalise,
                reading.csv_quote,
                reading.csv_delimiter,
                reading.decimal_comma,
                os.path.relpath(os.path.realpath(plan.source.pattern), data),
            )
            if reading.hive or asked not in [known.reading for known in ACCOUNTS if known.fields["account"] == account]:
                found.append(f"read {asked} for account {account}")
        return found or (self._too_far(attack, seen) if seen.exact else [])

    def _too_far(self, attack: Attack, seen: Seen) -> list[str]:
        """Counts on the neighbour's records, by the same key, against the declared sensitivity; each reading once."""
        plan, exact, sensitivity, there = seen.plans[0], seen.exact[0], sensitivity_of(attack), Seen()
        same = hashlib.sha256(f"{plan!r} {sensitivity}".encode() + exact.tobytes()).digest()
        if same in self._near:
            return []
        pattern, *needed = (
            path.replace(str(self._office), str(self._neighbour)) for path in (plan.source.pattern, *plan.source.needed)
        )
        assert pattern != plan.source.pattern
        reading = replace(plan.source.reading, folder=None)
        read = replace(plan, source=replace(plan.source, pattern=pattern, needed=tuple(needed), reading=reading))
        with tempfile.TemporaryDirectory(dir=self._neighbour) as scratch, watched(there), one_engine():
            moves = np.abs(cube.read_and_count(read, Path(scratch)) - exact)
        # Every table of a family that is measured moves by that much.
        moved = max(int(part.sum()) for part in np.split(moves, np.cumsum([one.cells for one in plan.marginals])))
        found = [f"one unit moves counts by {moved}, more than {sensitivity}"] if moved > sensitivity else []
        for rows, others in zip(seen.rows[:1], there.rows, strict=True):
            found += _rows_too_far(attack, plan, rows, others)
        if not found:
            self._near.add(same)
        return found


def _rows_too_far(attack: Attack, plan: CountingPlan, rows: ObservedRows, others: ObservedRows) -> list[str]:
    """What one unit moves of what a quality table says of rows, against what its noise is for."""
    moves = {one.name: np.abs(getattr(rows, one.name) - getattr(others, one.name)) for one in fields(rows)}
    along = np.split(moves["cut_by"], np.cumsum(plan.domain.shape[:-1]))
    moved = {
        "units_by_rows": moves["units"].sum(),
        "rows_cut": moves["cut"].sum(),
        "rows_cut_by": max(part.sum() for part in along),
        "rows_by_place": moves["places"].sum(),
        "failures_by_axis": moves["failures"].sum(),
    }
    most = sensitivity_of_rows(attack)
    return [
        f"one unit moves {measurement} by {far}, more than {most[measurement]}"
        for measurement, far in moved.items()
        if far > most[measurement]
    ]
