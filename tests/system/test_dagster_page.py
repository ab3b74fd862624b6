"""Dagster's own page in a real browser: what a person sees and clicks, and answers that hold nothing of a record."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import canary
import numpy as np
import pytest
from browser import chromium
from office import Office
from system.orchestrated import charges

PROJECT = """
from pathlib import Path

import dagster as dg
import numpy as np

from dphist_pipeline.confidential import noise
from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.releasing.release_spec import ReleaseSpec

noise.discrete_laplace = lambda scale, size: np.arange(1, size + 1) ** 2 * {noise}
here = Path(__file__).parent
defs = dg.Definitions.merge(
    *(release_definitions(ReleaseSpec.load(here / name)) for name in ("late.yaml", "spec.yaml")),
    # In one process, as in our own job: `test_dagster_canary.py` runs every step in a process of its own.
    dg.Definitions(assets=[dg.AssetSpec(["raw", "visits"])], executor=dg.in_process_executor),
)
"""
CHANGES = {**canary.CHANGES, "title": "Admissions by age and ward"}
WEEKLY = {
    **CHANGES,
    "release": "weekly",
    "period": "week",
    "period_column": "day",
    "period_format": "iso",
    "first_period": "2026-01-05",
}
# Runs start at once; a queue would need a daemon.
NO_QUEUE = "\nrun_coordinator: {module: dagster._core.run_coordinator, class: DefaultRunCoordinator}\n"
pytestmark = pytest.mark.outside  # `make outside` runs it
PATIENCE = 60_000  # milliseconds


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def served(office: Office, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a Dagster page with a weekly release, and one that waits for an upstream asset."""
    home = office.folder / "dagster_home"
    home.mkdir()
    settings = (Path(__file__).parents[2] / "dagster_project" / "dagster.yaml").read_text()
    (home / "dagster.yaml").write_text(settings + NO_QUEUE)
    office.opened().write_spec(**CHANGES, release="late", deps=["raw/visits"])
    (office.folder / "spec.yaml").rename(office.folder / "late.yaml")
    office.write_spec(**WEEKLY)
    office.write_records({**canary.records(), "day": np.full(canary.TOTAL, np.datetime64("2026-01-06"))})
    (office.folder / "project.py").write_text(PROJECT.format(noise=canary.FROZEN_NOISE))
    address = f"http://127.0.0.1:{(port := free_port())}"
    words = ["-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port), "-f", "project.py"]
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    more = {"DAGSTER_HOME": str(home), "DPHIST_STORE": str(office.store), "PYTHONPATH": path}
    with (office.folder / "page.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, *words], cwd=office.folder, env={**os.environ, **more}, stdout=log, stderr=log
        )
        try:
            for _ in range(600):
                time.sleep(0.5)
                try:
                    urllib.request.urlopen(f"{address}/server_info", timeout=10).close()
                    break
                except OSError:
                    assert server.poll() is None, (office.folder / "page.log").read_text()
            yield address
        finally:
            server.terminate()
            server.wait(timeout=120)


@pytest.fixture
def page(served: str) -> Iterator[Any]:
    """A browser's page; `page.said` keeps the answer to every query."""
    with chromium() as browser:
        from playwright.sync_api import Error

        made = browser.new_page(base_url=served, viewport={"width": 1500, "height": 1100})
        made.set_default_timeout(PATIENCE)
        made.said = []

        def keep(route: Any) -> None:
            try:
                answer = route.fetch()
                made.said.append(answer.text())
                route.fulfill(response=answer)
            except Error:
                return  # the page went on before the answer came: nobody is shown it

        made.route("**/graphql**", keep)
        yield made
        made.unroute_all(behavior="ignoreErrors")


def materialize(page: Any, release: str, until: Callable[[], bool]) -> None:
    """Clicks "Materialize" on the published asset as a person does, and waits for the run's end."""
    page.goto(f"/assets/{release}/published?view=overview")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_text("Additional assets will be materialized").wait_for()
    page.get_by_role("button", name="Confirm").click()
    wait_for_run(page, until)


def wait_for_run(page: Any, until: Callable[[], bool]) -> None:
    for _ in range(600):
        page.wait_for_timeout(500)
        if until():
            return
    raise AssertionError("the run did not end")


def ended(office: Office, status: str) -> Callable[[], bool]:
    """Whether a run ended so; looks into Dagster's own table, since to open an instance takes longer."""
    table = office.folder / "dagster_home" / "history" / "runs.db"

    def look() -> bool:
        with closing(sqlite3.connect(f"file:{table}?mode=ro", uri=True)) as connection:
            (found,) = connection.execute("SELECT count(*) FROM runs WHERE status = ?", [status]).fetchone()
        return bool(found)

    return look


def releases_one_week_from_the_page_of_partitions_and_plots_checks(office: Office, page: Any) -> None:
    page.goto("/assets/weekly/published?view=partitions")
    page.get_by_text("Missing (").first.wait_for()
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_role("button", name="Confirm").click()
    page.get_by_text("Show all partitions").click()
    week = page.get_by_placeholder("ex: 2026").last
    week.fill("2026-01-05")
    week.press("Enter")
    page.get_by_role("button", name="Launch 1 run").click()
    wait_for_run(page, ended(office, "SUCCESS"))
    assert charges(office) == 1 and office.published("weekly", "2026-01-05").is_dir()

    page.goto("/assets/weekly/published?view=partitions&partition=2026-01-05")
    for seen in ("Materialized (1)", "Failed (0)", "period 2026-01-05, revision 1", "account_left"):
        page.get_by_text(seen).first.wait_for()

    page.goto("/assets/weekly/published?view=checks")
    for seen in ("account_lasts", "releases_left"):
        page.get_by_text(seen).first.wait_for()
    page.get_by_text("Plots", exact=True).last.click()
    page.get_by_text("cells_tell_something").first.click()
    page.locator("canvas").nth(1).wait_for()  # cells, cells_above_zero


def test_a_person_releases_by_a_click_sees_why_one_is_refused_and_nothing_leaks(office: Office, page: Any) -> None:
    releases_one_week_from_the_page_of_partitions_and_plots_checks(office, page)
    page.goto("/assets/weekly/published?view=overview")
    for seen in ("Admissions by age and ward", "How many rows are there by age, ward", "r.dph_box", "21", "essence"):
        page.get_by_text(seen).first.wait_for()
    page.get_by_text("account_left", exact=True).first.wait_for()
    assert page.locator("img[alt='by age']").first.evaluate("picture => picture.naturalWidth") > 100
    page.get_by_text("Plots", exact=True).first.click()
    page.locator("canvas").first.wait_for()
    assert page.locator("canvas").count() >= 8, "numbers over time"

    page.goto("/locations/project.py/asset-groups/late/lineage")
    for seen in ("visits", "records", "cube", "sanitized", "published"):
        page.get_by_text(seen, exact=True).first.wait_for()

    materialize(page, "late", ended(office, "FAILURE"))
    assert charges(office) == 1
    page.goto("/runs")
    page.get_by_text("Failure").first.wait_for()
    page.locator("a[href*='/runs/']").first.click()
    page.get_by_text("needs what is not there: raw/visits").first.wait_for()
    page.get_by_text("Nothing was read or spent").first.wait_for()

    said = "\n".join(page.said)
    assert len(said) > 100_000 and "account_left" in said
    (office.folder / "project.py").unlink()
    assert canary.leaks(office, said=said) == []
