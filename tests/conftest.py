"""What tests of several folders share."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from database_server import Server, running_server
from hypothesis import is_hypothesis_test
from office import Office, made_once
from quick_catalogue import build_catalogue, empty_catalogue, place
from quick_pictures import UNDRAWN

import examples  # noqa: F401  (sets how many examples are tried)
from dphist_pipeline.answering import building, catalogue
from dphist_pipeline.base import arrow_without_pandas
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing import _index_pages

# Before anything starts a process: what tests write is kept in memory, where there is a folder for that with room.
MEMORY, ROOM = Path("/dev/shm"), 6 * 2**30
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # chosen anew
# No test sees the developer's own operator key or witness, or leaves anything there.
HOME = Path(tempfile.mkdtemp(prefix="dphist_tests_"))
os.environ |= {"XDG_CONFIG_HOME": str(HOME / "config"), "XDG_STATE_HOME": str(HOME / "state")}
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
STAND_INS = {"catalogue", "pictures"}
SERVERS = {"database_server", "object_server"}  # fixtures
pytest_plugins = ["quick_collection", "processor_seconds", "recorded_draws"]


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves tests that start a server to `make outside`; `make soak` tries all tests by examples again, with more."""
    for item in items:
        if SERVERS & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.outside)
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.many_examples)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests of ledgers and witnesses on both databases, but for those that open or make a file themselves."""
    alone = {"path", "tmp_path", "project"} & signature(metafunc.function).parameters.keys()
    for name in ("url", "witness_url"):
        if name in metafunc.fixturenames and not alone:
            both = ["sqlite", pytest.param("postgresql", marks=pytest.mark.outside)]
            metafunc.parametrize(name, both, indirect=True)


@pytest.fixture(scope="session")
def database_server() -> Iterator[Server]:
    """A PostgreSQL server for all tests of this process."""
    with running_server() as server:
        yield server


@pytest.fixture(autouse=True, scope="module")
def as_shipped(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests try the program as it is shipped: fence, fsync, pictures and catalogue are real.

    Catalogues grow from a copy of an empty one, in this process, and no process is started early;
    `answering/test_building_apart.py` tests the processes. A module that wants less says so, and why, by
    the marker `stand_in`.
    """
    marker = request.node.get_closest_marker("stand_in")
    parts = set(marker.args) if marker else set()
    assert marker is None or (parts and parts <= STAND_INS and marker.kwargs["why"]), request.node.nodeid
    empty_catalogue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_without_pandas, "arrow_without_pandas", lambda: None)  # frames are tried, too
        patch.setattr(building, "build_catalogue", build_catalogue)
        patch.setattr(building, "build_apart", building.build)
        if "catalogue" in parts:
            patch.setattr(building, "build_apart", lambda public, scratch, anew=False: place(public))
            patch.setattr(
                catalogue.Catalogue, "is_up_to_date", lambda self, folder: (self.public / catalogue.NAME).exists()
            )
            patch.setattr(_index_pages, "shows", lambda public, folder: True)
        if "pictures" in parts:
            for owner, name, instead in UNDRAWN:
                patch.setattr(owner, name, instead)
        yield


@pytest.fixture
def instance() -> Iterator[Any]:
    """An instance of Dagster, kept in memory."""
    import dagster as dg

    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An empty office, and nothing of the developer's own environment."""
    for name in (
        "DPHIST_STORE",
        "DPHIST_LEDGER",
        "DPHIST_WITNESS",
        "DPHIST_OPERATOR_KEY",
        "DPHIST_DEBUG",
        "FORCE_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    made = Office(tmp_path / "office")
    monkeypatch.setenv("DPHIST_WITNESS", str(made.witness))
    monkeypatch.chdir(made.folder)
    made_once(Operator.load_or_make().public)  # before a test has its own clock or temporary folder
    return made


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the seconds that tests of each folder took, the slowest folder first."""
    seconds = Counter[str]()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        folder = str(getattr(report, "nodeid", "")).partition("::")[0].rpartition("/")[0]
        seconds[folder.removeprefix("tests/")] += getattr(report, "duration", 0.0)
    told = ", ".join(f"{folder} {spent:.0f}" for folder, spent in seconds.most_common() if spent >= 1)
    terminalreporter.write_line(f"seconds by folder, of all processes together: {told or 'none'}")
