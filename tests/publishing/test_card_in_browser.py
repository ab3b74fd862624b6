"""The release card in Chromium: nothing sticks out, no two texts lie on each other, nothing is complained of."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pypdf
import pytest
from browser import OnePage, one_page
from by_hand import AGE, HEIGHT, WARD
from carded import card, noisy
from carded_reports import SAMPLED, made
from derived_files import made_anew
from requiring import missing

from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.notices import with_notice
from dphist_pipeline.spec.axes import domain_of

pytestmark = pytest.mark.outside  # `make outside` runs it
LONG = {"column": "place", "values": ["surgery", "x" * 200, "a very long name of a ward that goes on", "漢字" * 20]}
DAY = {"column": "day", "calendar": "day", "start": "2025-01-01", "stop": "2026-01-01"}
INCOME = {"column": "income", "start": 0, "stop": 1_000_000, "width": 1000, "above": True, "other": True}
YEARS = {"column": "age", "start": 0, "stop": 100, "width": 5, "above": True, "other": True}
PAGES: dict[str, list[dict[str, Any]]] = {
    "many": [YEARS, WARD, HEIGHT],
    "long names": [LONG, {**LONG, "name": "again"}],
    "days": [DAY, WARD],
    "large": [INCOME, {"column": "county", "values": [f"{number:05d}" for number in range(300)]}],
    "one": [AGE],
}
OF_REPORTS: dict[str, dict[str, Any]] = {
    "of reports": {"title": "Ages", "values_per_contributor": 3, "nonnegative": True},
    "sampled": {
        **{**SAMPLED, "collection": "sampled", "value": "a_rather_long_name_of_what_was_asked", "stop": 1000},
        "consumers": [{"name": "city", "epsilon": "1/7", "edges": [0, 7, 1000]}],
    },
    "fine": {
        **{"collection": "fine", "protocol": "shp", "round": "2026-03-02"},
        "consumers": [{"name": "f", "epsilon": 7, "width": "0.1"}],
    },
}
# Runs within a copy of the page; the page itself lets no script run.
MEASURE = """<script>
const boxes = svg => [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect(),
    (text.parentNode.getAttribute('transform') || '').includes('rotate')]);
const root = document.documentElement;
const found = {width: root.scrollWidth - root.clientWidth, outside: [], touching: []};
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect(), texts = boxes(svg);
  for (const [text, box] of texts)
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
      found.outside.push(text);
  texts.forEach(([one, a, leaning], i) => texts.slice(i + 1).forEach(([two, b, other]) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (!leaning && !other && across > 1 && down > 3) found.touching.push([one, two]);
  }));
}
root.setAttribute('data-found', JSON.stringify(found));
</script>"""

RUNNING_INTO = """<script>
const found = [];
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')], swatches = [...svg.querySelectorAll('.key path')];
  const titles = texts.filter(text => (text.parentNode.getAttribute('transform') || '').includes('rotate(-90'));
  for (const text of texts) for (const other of [...titles, ...swatches]) {
    const a = text.getBoundingClientRect(), b = other.getBoundingClientRect();
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (text !== other && across > -1 && down > 1) found.push([text.textContent, other.textContent]);
  }
}
document.documentElement.setAttribute('data-found', JSON.stringify(found));
</script>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[OnePage]:
    """The page in which cards are opened."""
    with one_page() as page:
        yield page


def found_in(browser: OnePage, page: Path, width: int = 1400) -> Any:
    """What a script in a page found."""
    return json.loads(browser.opened(page.as_uri(), width).get_attribute("html", "data-found"))


@pytest.fixture(scope="module")
def of_reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Cards of the local model."""
    folder = tmp_path_factory.mktemp("reports")
    return {name: made(folder / "store", **changes).card() for name, changes in OF_REPORTS.items()}


def installed_fonts() -> str:
    """Names of the families that fontconfig finds; empty without it."""
    if shutil.which("fc-list") is None:
        return ""
    return subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_sticks_out_and_no_text_lies_on_another(
    browser: OnePage, tmp_path: Path, of_reports: dict[str, str], width: int
) -> None:
    if not re.search("Liberation Sans|Arial", installed_fonts()):
        missing("fonts", "no font as wide as Arial, such as Liberation Sans, is installed: pictures are laid out by it")
    pages = [*(card(axes) for axes in PAGES.values()), *of_reports.values()]
    cards = [re.sub(r"<meta http-equiv[^>]*>", "", page) for page in pages]
    bodies = [re.search("<body>(.*)</body>", page, re.DOTALL) for page in cards]
    head = cards[0].partition("<body>")[0]
    page = tmp_path / "cards.html"
    page.write_text(f"{head}<body>{''.join(body[1] for body in bodies if body)}{MEASURE}</body>", encoding="utf-8")
    assert found_in(browser, page, width) == {"width": 0, "outside": [], "touching": []}
    assert browser.locator("h1").count() == len(pages)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("model", ["central", "local"])
def test_the_browser_has_nothing_to_complain_of(
    browser: OnePage, tmp_path: Path, of_reports: dict[str, str], model: str, width: int
) -> None:
    page = tmp_path / "card.html"
    shown_here = (
        card([AGE, WARD], title="<script>alert(1)</script>") if model == "central" else of_reports["of reports"]
    )
    page.write_text(shown_here, encoding="utf-8")
    elements = browser.opened(page.as_uri(), width).content()
    assert browser.complaints == []
    assert "</footer>" in elements and "<script>" not in elements


def test_a_complaint_would_be_seen(browser: OnePage, tmp_path: Path) -> None:
    page = tmp_path / "card.html"
    page.write_text(card([AGE]).replace("</body>", "<script>1</script></body>"), encoding="utf-8")
    assert "Content Security Policy" in " ".join(browser.opened(page.as_uri()).complaints)


def test_the_mark_of_a_withdrawal_hides_the_sql_on_the_catalogue(browser: OnePage, tmp_path: Path) -> None:
    axes, page = [AGE], tmp_path / "card.html"
    as_published = card(axes)
    note = {"withdrawn": {"at": "2026-03-20T00:00:00Z", "reason": "wrong counts"}}
    for shown_here, told in [(as_published, True), (with_notice(as_published, note), False)]:
        page.write_text(shown_here, encoding="utf-8")
        seen = browser.opened(page.as_uri()).inner_text("body")
        assert "SELECT * FROM 'histogram.parquet'" in seen
        assert ("dph_total" in seen) == ("ATTACH" in seen) == told


def test_a_wider_font_runs_into_no_title_and_no_swatch(browser: OnePage, tmp_path: Path) -> None:
    wards = {**WARD, "values": ["surgery", "medicine", "paediatrics", "intensive care"]}
    axes, page = [YEARS, wards], tmp_path / "card.html"
    cells = np.round(np.random.default_rng(1).gamma(1, 1500, domain_of(axes).shape))
    free = re.sub(r"<meta http-equiv[^>]*>", "", card(axes, noisy(axes, cells, Fraction(6))))
    wide = "<style>svg text{font-family:'DejaVu Sans',Verdana,sans-serif}</style>"
    page.write_text(free.replace("</body>", f"{wide}{RUNNING_INTO}</body>"), encoding="utf-8")
    assert found_in(browser, page) == []


BEYOND = """<script>
const beyond = [...document.querySelectorAll('section:has(>details)')]
    .filter(one => one.scrollWidth > one.clientWidth).map(one => one.firstChild.textContent);
document.documentElement.setAttribute('data-found', JSON.stringify(beyond));
</script>"""


def test_no_column_of_numbers_is_cut_off_by_the_edge_of_a_printed_page(browser: OnePage, tmp_path: Path) -> None:
    """Four columns of numbers with intervals have half of a sheet; 7.5 in is the width between margins."""
    wards = {**WARD, "values": ["surgery", "medicine", "maternity"], "other": True}
    axes = [{**YEARS, "width": 20}, {**wards, "column": "house"}, wards]
    for told in (axes[1:], axes[:2]):
        cells = np.full(domain_of(told).shape, 11_853.0)
        page = re.sub(r"<meta http-equiv[^>]*>", "", card(told, noisy(told, cells, Fraction(60))))
        assert "@media print" in page
        page = page.replace("@media print", "@media all").replace("</body>", f"{BEYOND}</body>")
        (tmp_path / "card.html").write_text(page, encoding="utf-8")
        assert found_in(browser, tmp_path / "card.html", 720) == []


def printed(browser: OnePage, page: Path) -> list[str]:
    """The text of each sheet that the browser would print."""
    sheets = io.BytesIO(browser.opened(page.as_uri()).pdf(prefer_css_page_size=True))
    return [" ".join(sheet.extract_text().split()) for sheet in pypdf.PdfReader(sheets).pages]


def test_a_card_of_thirty_cells_is_three_sheets_that_say_which_card_they_are(browser: OnePage, tmp_path: Path) -> None:
    wards = {**WARD, "values": ["surgery", "medicine", "paediatrics", "intensive care"]}
    axes, page = [{**YEARS, "width": 20, "other": False}, wards], tmp_path / "card.html"
    cells = np.round(np.random.default_rng(1).gamma(1, 1500, domain_of(axes).shape))
    assert cells.size == 30
    page.write_text(card(axes, noisy(axes, cells, Fraction(6)), title='Age "and" </style> ward'), encoding="utf-8")
    sheets = printed(browser, page)
    assert len(sheets) <= 3
    for number, sheet in enumerate(sheets, 1):
        assert 'Age "and" </style> ward, 2026-03-02, revision 1' in sheet and f"{number} / {len(sheets)}" in sheet
    assert "▶" not in "".join(sheets) and "The numbers of this picture" not in "".join(sheets)
    tables = [sheet.partition("(in brackets")[2] for sheet in sheets if "(in brackets" in sheet]
    assert len(tables) == 1 and all(f"{start} to" in tables[0] for start in range(0, 100, 20))


def test_a_superseded_card_is_three_sheets_too(browser: OnePage, tmp_path: Path) -> None:
    page = tmp_path / "public/weekly/period=2026-02-16/revision=1/card.html"
    for revision in (1, 2):
        wards = {**by_hand.WARD, "values": ["surgery", "medicine", "paediatrics", "intensive care"]}
        axes: list[dict[str, Any]] = [{**YEARS, "width": 20, "other": False}, wards]
        told = by_hand.estimate(axes, np.round(np.random.default_rng(revision).gamma(1, 1500, domain_of(axes).shape)))
        told = replace(told, quality=by_hand.QUALITY)
        facts = {"max_rows_per_unit": 3, "reason": "the demo shows a revision; its records are the same, its noise new"}
        by_hand.publish(tmp_path / "public", told, axes, "weekly", "2026-02-16", revision, pictures=True, **facts)
    DerivedFiles(made_anew(tmp_path / "public")).set_notices(tmp_path / "scratch")
    assert "Superseded by revision 2" in page.read_text()
    sheets = printed(browser, page)
    assert len(sheets) <= 3 and "For the record" in sheets[-1]
    assert "Files beside this page" not in "".join(sheets)
