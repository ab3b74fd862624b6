"""`dphist plot --over period`: one bar a period, with the numbers and intervals of `dphist answer`."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import by_hand
import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.cli.app import app
from dphist_pipeline.publishing import pictures
from dphist_pipeline.releasing.store import Store

WARD = {"column": "ward", "values": ["surgery", "medicine", "maternity"]}
WEEKS = ("2026-03-02", "2026-03-09", "2026-03-23")  # one is missing


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    opened = Store.create(tmp_path_factory.mktemp("project") / "store")
    for number, week in enumerate(WEEKS):
        cells = by_hand.estimate([WARD], np.array([100.0, 40.0, 7.0]) + number, Fraction(3))
        after = (date.fromisoformat(week) + timedelta(days=7)).isoformat()
        ends = {"period_start": f"{week}T00:00:00+00:00", "period_end": f"{after}T00:00:00+00:00"}
        by_hand.publish(opened.public, cells, [WARD], "weekly", week, **ends)
    by_hand.publish(opened.public, by_hand.estimate([WARD]), [WARD], "once", "all", period_start=None, period_end=None)
    return opened


def plotted(store: Store, release: str, *words: str) -> Result:
    return CliRunner().invoke(app, ["plot", release, "--over", "period", *words, "--store", str(store.root)])


@pytest.mark.slow
@pytest.mark.parametrize("box", [{}, {"ward": "surgery"}])
def test_each_bar_is_what_answer_says_of_its_period(store: Store, box: dict[str, str]) -> None:
    folders = [store.public / "weekly" / f"period={week}" / "revision=1" for week in WEEKS]
    picture = pictures.Picture.of_periods(Publication.read(folders[-1]).by_period(box).to_pylist(), False)
    answers = [Publication.read(folder).answer(box) for folder in folders]
    sums = picture.sums
    assert sums.axes[0].labels == WEEKS and sums.low is not None and sums.high is not None
    # A single cell is told by its estimate, several cells by their unbiased sum, as everywhere.
    assert sums.values.tolist() == [one.estimate if box else one.unbiased for one in answers]
    assert sums.low.tolist() == [one.ci_lower for one in answers]
    assert sums.high.tolist() == [one.ci_upper for one in answers]
    assert "7 days are in no published period" in picture.note and "not chance" in picture.note


@pytest.mark.slow
def test_a_page_has_the_numbers_and_the_newest_periods_are_drawn(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MOST_BARS", 2)
    done = plotted(store, "weekly", "--where", "ward = surgery", "--output", str(tmp_path / "over.html"))
    assert done.exit_code == 0 and "by period" in done.stdout
    page = (tmp_path / "over.html").read_text(encoding="utf-8")
    assert "The newest 2 of 3 periods." in page and "where ward = surgery" in page
    assert WEEKS[2] in page and WEEKS[0] not in page


def test_one_period_and_a_release_without_periods_are_refused(store: Store, tmp_path: Path) -> None:
    file = str(tmp_path / "over.svg")
    assert plotted(store, "weekly", "--period", WEEKS[0], "--output", file).exit_code == 2
    refused = plotted(store, "once", "--output", file)
    assert refused.exit_code == 1 and "has no periods to draw" in str(refused.exception)
    assert list(tmp_path.iterdir()) == []
