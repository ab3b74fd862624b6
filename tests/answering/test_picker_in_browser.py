"""The picker on a release's page in Chromium: it tells what the macros tell, to the last digit that it shows."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answering_scenario import attached, rows_of
from picker_scenario import Question, every_kind, questions
from requiring import missing

from dphist_pipeline.publishing.formatting import shown_number
from dphist_pipeline.publishing.told_numbers import told_number

pytestmark = pytest.mark.outside  # `make outside` runs it
Open = Callable[..., Any]
ASK = """async (asked) => {
    const found = [];
    for (const [name, box, first, last] of asked) {
        try {
            const made = await dphPicker.ask(name, box, first, last);
            found.push({...made, shown: made.sum && dphPicker.told(made.sum)});
        } catch (error) { found.push({refused: error.message}); }
    }
    return found; }"""


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_kind(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def opened(public: Path) -> Iterator[Open]:
    """Opens a page as a file; `complaints` beside it is what the browser said."""
    if importlib.util.find_spec("playwright") is None:
        missing("playwright", "the Python package playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        missing("chromium", "Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])

        def open_page(release: str, width: int = 1400) -> Any:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.complaints, page.loaded = [], []
            page.on("console", lambda said: page.complaints.append(said.text))
            page.on("pageerror", lambda error: page.complaints.append(str(error)))
            page.on("request", lambda asked: page.loaded.append(asked.url))
            page.goto((public / release / "index.html").as_uri())
            return page

        yield open_page
        browser.close()


def in_words(row: dict[str, Any]) -> str:
    """A row of a macro as pages tell it."""
    told = told_number(row)
    number = shown_number(told.value, told.decimals)
    if told.half is not None:
        return f"{number}\u00a0±\u00a0{shown_number(told.half, told.decimals)}"
    if math.isnan(told.lower):
        return number
    return (
        f"{number} ({shown_number(told.lower, told.decimals)}\u00a0to\u00a0{shown_number(told.upper, told.decimals)})"
    )


def assert_told(found: dict[str, Any], shown: dict[str, Any] | None, row: dict[str, Any]) -> None:
    for name in ("cells", "basis", "note"):
        assert found[name] == row[name], name
    for name in ("estimate", "unbiased", "noise_error", "ci_lower", "ci_upper"):
        near = None if row[name] is None else pytest.approx(row[name], rel=1e-12, abs=1e-9)
        assert found[name] == near, name
    assert "reliability" not in row or found["reliability"] == row["reliability"]
    if shown is not None:
        assert shown["number"] == in_words(row)
        assert shown["estimate"] == shown_number(row["estimate"], told_number(row).decimals)


ASKED = 6  # questions to a table
KINDS = ["weekly", "hostile", "small", "levels", "crossed", "fine_only", "reports", "days", "ahp", "ihp", "dpcube"]
KINDS += ["structure_first", "p_hpartition", "kd_hierarchy", "sreb_gca", "dphr", "grouping_smoothing"]


@pytest.mark.parametrize("release", KINDS)
def test_the_picker_tells_what_the_macros_tell(opened: Open, public: Path, release: str) -> None:
    page, asked = opened(release), questions(public, release, ASKED)
    answers, told = page.evaluate(ASK, asked), 0
    with attached(public / "catalog.duckdb") as connection:
        for question, found in zip(asked, answers, strict=True):
            if "refused" in found:
                with pytest.raises(Exception, match="no cells lie where"):
                    _rows(connection, question)
                continue
            assert "why" not in found, found
            sums, periods = _rows(connection, question)
            (row,) = sums
            if told < 3:
                assert rows_of(connection, found["call"].removesuffix(";")) == sums
            assert_told(found["sum"], found["shown"], row)
            assert [period[0] for period, _ in found["periods"]] == [one["period"] for one in periods]
            for (_, one), of_period in zip(found["periods"], periods, strict=True):
                assert_told(one, None, of_period)
            told += 1
    assert told > len(asked) / 2
    assert page.complaints == []
    page.close()


def _rows(connection: Any, question: Question) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the macros that answer a question: of all its periods together, and of each if they are several."""
    name, box, first, last = question
    conditions = _json(dict(box))
    rows = rows_of(connection, f"FROM r.dph_box('r.{name}', ?)", conditions)
    within = [row for row in rows if first <= row["period"] <= last]
    if len(within) == 1:
        return within, []
    return rows_of(connection, f"FROM r.dph_over('r.{name}', ?, ?, ?)", first, last, conditions), within


def _json(box: dict[str, Any]) -> str:
    return json.dumps(box)
