"""Whole specs from an attacker's grammar: whatever they ask for, nothing of the records is told but through noise."""

from __future__ import annotations

import random
import secrets
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from attacked_office import AttackedOffice, without_crashes_and_small_noise
from office import Office
from spec_grammar import attack

FEWEST_RELEASES = 0.15
SPECS_OF_A_STORE = 150


@pytest.fixture
def attacked(office: Office) -> Iterator[AttackedOffice]:
    with without_crashes_and_small_noise():
        yield AttackedOffice(office.folder.parent)


def findings_of(attacked: AttackedOffice, seed: int, specs: int, seconds: float) -> tuple[Counter[str], list[str]]:
    """How specs of the grammar ended, and what the first of them that went wrong did."""
    outcomes, started = Counter[str](), time.monotonic()
    for number in range(specs):
        if time.monotonic() - started > seconds:
            break
        choice = random.Random(f"{seed} {number}")
        made, also = attack(choice, number), []
        if choice.random() < 0.02:
            also.append(("rehearse", "--rows", "40"))
        if choice.random() < 0.02:
            also.append(("forecast", "--repeat", "1", "--mechanism", "geometric"))
        tried = attacked.tried(made, tuple(also))
        outcomes[tried.outcome] += 1
        if tried.findings:
            return outcomes, [f"seed {seed}, spec {number}: {made}", *tried.findings]
        if number % SPECS_OF_A_STORE == SPECS_OF_A_STORE - 1:
            if found := attacked.in_the_end():
                return outcomes, [f"seed {seed}, up to spec {number}", *found]
            attacked.renew()
    return outcomes, attacked.in_the_end()


def test_no_spec_of_the_grammar_tells_more_than_its_noise(attacked: AttackedOffice) -> None:
    outcomes, findings = findings_of(attacked, seed=1, specs=150, seconds=600)
    print(f"\n{sum(outcomes.values())} specs: {dict(outcomes)}")
    assert findings == []
    assert outcomes["released"] >= FEWEST_RELEASES * sum(outcomes.values())
