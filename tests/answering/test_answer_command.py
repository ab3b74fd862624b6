"""`dphist answer`: one count or a table of counts, with the reason where an estimate lies outside of its interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import by_hand
import pytest
import reported
from answering_scenario import AXES, made
from typer.testing import CliRunner, Result

from dphist_pipeline.answering.notes import BELOW, NO_INTERVAL, SMOOTHED
from dphist_pipeline.cli import app
from dphist_pipeline.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    opened = Store.create(tmp_path_factory.mktemp("project") / "store")
    for kind in ("cells", "tree", "smoothed", "none"):
        by_hand.publish(opened.public, made(kind), AXES, kind)
    reported.publish(opened.public, reported.estimate([reported.AGE]), [reported.AGE])
    return opened


def answered(store: Store, *words: str) -> Result:
    return CliRunner().invoke(app, ["answer", *words, "--store", str(store.root)])


def facts(store: Store, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered(store, *words, "--json").stdout)
    return found


def test_a_table_by_axes_is_the_marginal_of_the_release(store: Store) -> None:
    found = facts(store, "cells", "--by", "state, age", "--where", "region = 'S'")
    assert found["by"] == ["state", "age"]
    rows = found["rows"]
    assert [row["state"] for row in rows] == ["A"] * 5 + ["B"] * 5 or len(rows) == 10
    assert sum(row["estimate"] for row in rows) == pytest.approx(
        facts(store, "cells", "--where", "region = 'S'")["estimate"]
    )
    shown = answered(store, "cells", "--by", "region")
    assert shown.exit_code == 0
    head, *lines = shown.stdout.splitlines()
    assert head.split() == ["region", "estimate", "ci_lower", "ci_upper", "cells"]
    assert [line.split()[0] for line in lines[:2]] == ["S", "N"]


def test_an_estimate_outside_of_its_interval_says_why(store: Store) -> None:
    first = "age < 0 and county = '01' and day < 2026-01-12"
    for release, note in (("cells", BELOW), ("smoothed", SMOOTHED), ("none", NO_INTERVAL)):
        found = facts(store, release, "--where", first)
        assert found["note"] == note
        assert note in answered(store, release, "--where", first).stdout
    assert facts(store, "cells")["note"] is None
    assert facts(store, "none")["lower"] is None


def test_an_unknown_axis_is_refused_with_the_right_names(store: Store) -> None:
    refused = answered(store, "tree", "--by", "stat")
    assert refused.exit_code == 1
    assert "Did you mean 'state'" in str(refused.exception)


def test_a_table_of_a_tree_has_the_bars_of_linear_estimates(store: Store, tmp_path: Path) -> None:
    rows = facts(store, "tree", "--by", "state")["rows"]
    assert {row["basis"] for row in rows} == {"linear"}
    assert all(row["ci_lower"] < row["estimate"] < row["ci_upper"] for row in rows)


def test_a_range_that_cuts_bins_is_answered_by_the_bins_within_and_around(store: Store) -> None:
    found = facts(store, "cells", "--where", "day in [2026-01-07, 2026-01-21) and region = 'S'")
    within = facts(store, "cells", "--where", "day in [2026-01-12, 2026-01-19) and region = 'S'")
    around = facts(store, "cells", "--where", "day in [2026-01-05, 2026-01-26) and region = 'S'")
    assert (found["lower"], found["upper"]) == (within["lower"], around["upper"])
    assert "cut bins of day" in found["note"]
    assert "cut bins of day" in answered(store, "cells", "--where", "day in [2026-01-07, 2026-01-21)").stdout


def test_two_ranges_that_cut_bins_are_answered_together(store: Store) -> None:
    found = facts(store, "cells", "--where", "day < 2026-01-07 and age < 7")
    assert "cut bins of" in found["note"] and "day" in found["note"] and "age" in found["note"]
    assert found["lower"] == 0


def test_a_release_of_the_local_model_is_answered_too(store: Store) -> None:
    made_of = reported.estimate([reported.AGE])
    found, box = facts(store, "town_age", "--where", "age in [6, 45)"), made_of.box(age=(6, 45))
    assert (found["estimate"], found["lower"], found["upper"]) == (box.estimate, box.lower, box.upper)
    assert (found["basis"], found["noise_error"]) == ("linear", box.noise_error)
    cut = facts(store, "town_age", "--where", "age in [7, 45)")
    inner, outer = made_of.box(age=(18, 45)), made_of.box(age=(6, 45))
    assert (cut["lower"], cut["upper"], cut["cells"]) == (inner.lower, outer.upper, outer.cells)
    rows = facts(store, "town_age", "--by", "age")["rows"]
    assert [row["estimate"] for row in rows] == made_of.values.tolist()
    assert {row["basis"] for row in rows} == {"linear"}


def test_an_answer_says_what_was_counted_and_in_the_local_model_how_many_reports_there_are(
    store: Store,
) -> None:
    central, local = answered(store, "cells").stdout, answered(store, "town_age").stdout
    assert " records, estimated over" in central and "interval of the true (bounded) count: " in central
    assert " contributors, estimated over" in local and "interval of the true number: " in local
    assert "Estimated from 2,500 reports; an estimate may exceed their number." in local and "reports" not in central
