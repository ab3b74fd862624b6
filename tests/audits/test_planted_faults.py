"""Audits find every fault that is planted for them; `report.py` shows which of the two finds which."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from grey_box import Asked, losses, misspent
from neighbours import bounded
from planted import FAULTS, Fault, caught_by_replay, shown_by_log

from examples import mostly_audited

BY_NAME = {fault.name: fault for fault in FAULTS}
QUICK = ["half the noise scale in the sampler", "SReB_GCA as printed: a draw per bin of a group"]


@pytest.mark.parametrize("name", mostly_audited([fault.name for fault in FAULTS if fault.replay], [0]))
def test_the_replay_finds_a_planted_fault(name: str) -> None:
    assert caught_by_replay(BY_NAME[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_audited(QUICK, [0]))
def test_the_black_box_finds_a_planted_fault(name: str) -> None:
    assert beyond(BY_NAME[name])


def beyond(fault: Fault) -> bool:
    with fault.within():
        return bounded(fault.audited, fault.pair, fault.trials).sure > fault.epsilon


def test_a_fault_below_the_seams_of_the_replay_is_the_black_boxs_to_find() -> None:
    fault = BY_NAME["half the noise scale in the sampler"]
    assert not fault.replay and caught_by_replay(fault, runs=3) == []


def test_every_fault_is_found_by_one_of_the_two() -> None:
    assert all(fault.replay or fault.name in QUICK for fault in FAULTS)


def test_the_log_keeps_the_scale_that_was_drawn_not_the_one_that_was_declared() -> None:
    (asked,) = shown_by_log(BY_NAME["half the noise scale at the measurements"]).asked
    (drawn,) = asked.draws
    assert (drawn[0], drawn[1], drawn[2].size) == ("discrete_laplace", Fraction(1, 2), 2)
    assert asked.computed is not None and asked.computed.tolist() == [0, 0]


def question(epsilon: str, computed: list[int], scale: str, measurement: str = "noisy_cells") -> Asked:
    noise = np.zeros(len(computed), dtype=np.int64)
    draws = [("discrete_laplace", Fraction(scale), noise)]
    return Asked("counts", {"door": measurement, "epsilon": epsilon}, draws, np.array(computed))


def lost(here: Asked, there: Asked, moved: list[int], sensitivity: int) -> list[str]:
    return losses([here], [there], np.array(moved), sensitivity, Fraction(1)).findings


def test_a_measurement_may_lose_its_share_times_how_far_the_counts_moved() -> None:
    # Epsilon 1 for 4 rows, of which 2 moved: scale 4 loses 2/4, and may; a scale a little smaller may not.
    here = question("1", [5, 5, 5], "4")
    assert lost(here, question("1", [6, 4, 5], "4"), [1, -1, 0], 4) == []
    close = [question("1", counts, "399/100") for counts in ([5, 5, 5], [6, 4, 5])]
    assert any("lost" in found for found in lost(close[0], close[1], [1, -1, 0], 4))


def test_a_measurement_may_not_move_further_than_its_constant_times_the_counts() -> None:
    here, there = question("1", [5, 5], "10"), question("1", [6, 4], "10")
    assert lost(here, there, [1, 0], 1) == ["noisy_cells 'counts' moved by 2, and may by 1"]
    here, there = (question("1", counts, "10", "noisy_contrasts") for counts in ([5, 5], [6, 4]))
    assert lost(here, there, [1, 0], 1) == []


def test_an_answer_without_noise_loses_more_than_any_epsilon() -> None:
    here, there = (Asked("counts", {"door": "new", "epsilon": "50"}, [], np.array([count])) for count in (3, 4))
    assert here.loss(there) > 10**9 and here.loss(here) == 0


def test_a_share_that_no_measurement_took_must_be_forfeited() -> None:
    fault = BY_NAME["a budget spent twice"]
    run = fault.audited.run(fault.pair.here, shown_by_log(fault).__class__())
    assert misspent(run, Fraction(1)) == ["what measurements took is not what was charged"]
    assert misspent(run, Fraction(2))[1:] == ["charges do not sum to the declared epsilon"]
