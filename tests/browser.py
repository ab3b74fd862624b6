"""Debian's Chromium, driven by Playwright; a test skips with a word where one of the two is missing."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from requiring import missing


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window, closed at the end."""
    if importlib.util.find_spec("playwright") is None:
        missing("playwright", "the Python package playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        missing("chromium", "Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def listened_page(browser: Any, width: int, **more: Any) -> Any:
    """A page whose `complaints` are what its scripts wrote on the console, and their errors."""
    page = browser.new_page(viewport={"width": width, "height": 900}, **more)
    page.complaints = []
    page.on("console", lambda said: page.complaints.append(said.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    return page
