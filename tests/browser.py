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


class OnePage:
    """A page of a browser in which one address is opened after another: a page for each costs seven times more.

    Attributes:
        complaints: what scripts wrote on the console since an address was opened, and their errors.
        loaded: the addresses of all that was asked for since then.
    """

    def __init__(self, browser: Any) -> None:
        self.page, self.complaints, self.loaded = browser.new_page(), list[str](), list[str]()
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda asked: self.loaded.append(asked.url))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def opened(self, address: str, width: int = 1400, color_scheme: str = "light") -> OnePage:
        """Shows an address, with nothing left of the one before: its scripts have ended."""
        self.page.goto("about:blank")
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=color_scheme)
        self.complaints.clear()
        self.loaded.clear()
        self.page.goto(address)
        return self


@contextmanager
def one_page() -> Iterator[OnePage]:
    """One page of a browser of its own."""
    with chromium() as browser:
        yield OnePage(browser)
