"""The pages `index.html` in Chromium: by keyboard, narrow and wide, by axe-core, with no request but the picker's."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import by_hand
import families_by_hand
import numpy as np
import pytest
from browser import OnePage, one_page
from by_hand import AGE, WARD
from derived_files import made_anew
from requiring import missing

from dphist_pipeline.publishing.published_files import PublishedFolder

pytestmark = pytest.mark.outside  # `make outside` runs it
AXE = "axe-core@4.14.1"
SEALED = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
TITLE = '</script><script>alert(1)</script> & "quoted" \u202e ' + "averylongwordwithoutaplacetobreak" * 4
NOTE = {"reason": TITLE, "at": "2026-03-20T00:00:00Z", "entry": 1}
ABOUT = {
    "publisher": TITLE,
    "license": "https://creativecommons.org/licenses/by/4.0/",
    "contact": "data@office.example",
}
PAGES = ("index.html", "weekly/index.html", "gone/index.html", "family/index.html")
Open = Callable[..., Any]

# What a person needs who does not read code: the whole of axe-core's rules, with those of good practice.
AUDIT = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
    .map(found => [found.id, found.nodes.map(node => node.target.join(' '))])"""
FOCUS = """() => { const at = document.activeElement, box = at.getBoundingClientRect();
    const style = getComputedStyle(at);
    return [at.tagName + '#' + at.id + ' ' + (at.getAttribute('href') || ''), style.outlineStyle !== 'none',
        box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth]; }"""


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A public folder with what a reader may meet: revisions, withdrawals, a family, texts that would be code."""
    folder = tmp_path_factory.mktemp("store")
    public, scratch = folder / "public", folder / "scratch"
    scratch.mkdir()
    (folder / "about.json").write_text(json.dumps(ABOUT))
    for number in range(4):
        period, after = f"2026-03-{2 + 7 * number:02d}", f"2026-03-{9 + 7 * number:02d}"
        days = {"period_start": f"{period}T00:00:00+01:00", "period_end": f"{after}T00:00:00+01:00"}
        facts = {**days, "title": TITLE, "epsilon": "1/6", "published_on": "2026-03-30"}
        values = np.array([1000.0 + 300 * number, 500.0, 7.0])
        for revision in (1, 2)[: 2 - number % 2]:
            why = {"reason": TITLE} if revision == 2 else {}
            made = by_hand.estimate([WARD], values, off=0.0)
            last = by_hand.publish(public, made, [WARD], period=period, revision=revision, **facts, **why)
    PublishedFolder(last.path).mark_withdrawn(NOTE, scratch)
    made = by_hand.estimate([AGE, WARD])
    PublishedFolder(by_hand.publish(public, made, [AGE, WARD], "gone", "all").path).mark_withdrawn(NOTE, scratch)
    families_by_hand.publish_family(public, [AGE, WARD], [("age", "ward"), ("ward",)])
    return made_anew(public)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe-core, which npm fetches once a run and which is compared with a digest."""
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        missing("axe-core", "npm is not installed: axe-core cannot be had")
    called = [npm, "pack", AXE, "--silent", "--cache", str(folder / "cache")]
    got = subprocess.run(called, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    packed = list(folder.glob("*.tgz"))
    if got.returncode or len(packed) != 1:
        missing("axe-core", "npm cannot fetch axe-core")
    assert base64.b64encode(hashlib.sha512(packed[0].read_bytes()).digest()).decode() == SEALED
    with tarfile.open(packed[0]) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


@pytest.fixture(scope="module")
def opened(public: Path) -> Iterator[Open]:
    """Opens a page as a file."""
    with one_page() as page:

        def open_page(path: str, width: int = 1400, color_scheme: str = "light") -> OnePage:
            return page.opened((public / path).as_uri(), width, color_scheme)

        yield open_page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_core_finds_no_violation(opened: Open, axe: str, path: str, scheme: str) -> None:
    page = opened(path, color_scheme=scheme)
    page.evaluate(axe)
    assert page.evaluate(AUDIT) == []
    if page.locator("#picker button[type=submit]").count():
        if page.locator("#period-from").count():
            page.locator("#period-from").select_option(index=0)
        page.locator("#picker button[type=submit]").click()
        page.locator("#picked .answer").wait_for()
        page.locator("#picked summary").click()
        assert page.evaluate(AUDIT) == []


def test_axe_core_would_find_a_picture_without_words_and_faint_letters(opened: Open, axe: str) -> None:
    page = opened("weekly/index.html")
    page.evaluate("document.querySelector('svg').removeAttribute('aria-label')")
    page.evaluate("document.querySelector('.note').style.color = '#ccc'")
    page.evaluate(axe)
    assert {name for name, _ in page.evaluate(AUDIT)} == {"svg-img-alt", "color-contrast"}


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_its_window_and_the_browser_says_nothing(opened: Open, public: Path, path: str, width: int) -> None:
    page = opened(path, width)
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
    outside = (
        "[...document.querySelectorAll('main *:not(.of)')].filter(one => !one.closest('.scroll, svg, .of, .skip'))"
    )
    beyond = f"{outside}.filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML)"
    assert page.evaluate(beyond) == []
    own = tuple((public / where).as_uri() for where in (path, f"{Path(path).parent}/picker/"))
    assert page.complaints == [] and [one for one in page.loaded if not one.startswith(own)] == []


@pytest.mark.parametrize("path", PAGES)
def test_every_link_is_reached_by_tab_in_order_and_is_seen(opened: Open, path: str) -> None:
    page = opened(path, 400)
    links = page.evaluate("[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))")
    seen = []
    stops = "[tabindex='0'], :is(select, input, button):not(:disabled, [type=radio]:not(:checked))"
    shown = "stops => [...document.querySelectorAll(stops)].filter(one => one.checkVisibility()).length"
    for _ in range(len(links) + page.evaluate(shown, stops)):
        page.keyboard.press("Tab")
        named, has_outline, is_shown = page.evaluate(FOCUS)
        assert has_outline and is_shown, named
        seen.append(named)
    assert [named.partition(" ")[2] for named in seen if named.startswith("A#")] == links
    assert links[0] == "#main"


def test_a_reader_goes_from_all_releases_to_one_and_back_by_keyboard(opened: Open) -> None:
    page = opened("index.html")
    page.locator("h2 a[href='weekly/index.html']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/weekly/index.html")
    assert page.locator("h1").inner_text().startswith("</script><script>alert(1)</script>")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    page.locator("nav a").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/public/index.html")
