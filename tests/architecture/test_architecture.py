"""What is public, what is imported when, and what must never be committed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from office import Office

import dphist_pipeline as dph
from dphist_pipeline.base.engine_versions import HELD, SUITE
from dphist_pipeline.ledger.clock import BUILT

PROJECT = Path(__file__).resolve().parents[2]
ENGINES = {"dagster", "polars", "numba", "duckdb", "pyarrow", "numpy"}
# Each takes longer to load than anything that a small release does.
SLOW = {"dagster", "numba", "pandas", "altair", "pyarrow.compute", "sqlalchemy.dialects.postgresql"}
PUBLIC = [
    "DphistError",
    "Estimate",
    "HistogramRelease",
    "LocalCollection",
    "Release",
    "ReleaseSpec",
    "Store",
    "count_cube",
    "count_reports",
    "load_collection",
    "load_spec",
    "mechanisms",
    "publish_collection",
    "release",
    "sanitize",
]


def committed(*endings: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [PROJECT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and (not endings or path.name.endswith(endings))]


def loaded_by(statement: str, of: set[str] = ENGINES) -> set[str]:
    code = f"{statement}\nimport sys; print(*{of} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(shown.stdout.rpartition("}")[2].split())


def test_the_public_names_are_these_and_no_others():
    assert sorted(dph.__all__) == PUBLIC
    assert dir(dph) == PUBLIC
    for name in PUBLIC:
        assert getattr(dph, name) is not None


def test_importing_the_package_loads_no_engine():
    assert loaded_by("import dphist_pipeline") == set()


@pytest.mark.slow
def test_checking_a_spec_loads_neither_polars_nor_dagster_nor_a_solver(office: Office):
    office.opened()
    checked = f"""
import sys
from dphist_pipeline.cli import app
sys.argv = ["dphist", "check", {str(office.folder / "spec.yaml")!r}, "--store", {str(office.store)!r}, "--json"]
try: app.main()
except SystemExit as end: assert end.code == 0, end.code
"""
    with office.witnessed():
        loaded = loaded_by(checked)
    assert "numpy" in loaded and not loaded & {"polars", "numba", "dagster"}


@pytest.mark.slow
def test_a_small_release_loads_nothing_slow(office: Office):
    office.opened()
    spec, store = str(office.folder / "spec.yaml"), str(office.store)
    released = f"import dphist_pipeline as dph\nprint(dph.release(dph.load_spec({spec!r}, {store!r}), {store!r}))"
    with office.witnessed():
        loaded = loaded_by(f"{released}\nprint('}}')", SLOW)
    assert loaded == set()


def test_the_import_contracts_hold():
    command = Path(sys.executable).parent / "lint-imports"
    checked = subprocess.run([command], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
def test_no_file_names_a_package_server_or_a_place_on_a_machine():
    server = re.compile(r"https?://[^\s\"'`)>]*(pypi|pythonhosted|npmjs|/simple)|index-url", re.IGNORECASE)
    place = re.compile(r"(?<![\w.])/(work|farm|root)/\w")
    for path in committed(".py", ".toml", ".txt", ".md", ".yaml", ".sql", "Makefile", "run"):
        if path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8")
        assert not server.search(text), path
        assert not place.search(text), path


def test_constraints_pin_exact_versions_by_name_only():
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.+!]+", line) for line in lines)


def test_the_year_of_build_is_that_of_the_newest_version():
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    years = re.findall(r"^## \[\d[^\]]*\] - (\d{4})-\d\d-\d\d$", changelog, re.MULTILINE)
    assert years and max(years) == str(BUILT)


def test_engines_are_pinned_and_bounded_by_what_the_suite_passed_with():
    pins = dict(line.split("==") for line in (PROJECT / "constraints.txt").read_text().splitlines())
    assert all(pins[name].startswith(f"{minor}.") for name, minor in SUITE.items())
    for name in HELD:
        major, minor = map(int, SUITE[name].split("."))
        bounded = f'"{name}>={major}.{minor},<{major}.{minor + 1}",'
        assert bounded in (PROJECT / "pyproject.toml").read_text(encoding="utf-8")


def test_no_data_set_or_lock_file_is_committed():
    assert committed(".parquet", ".csv", ".duckdb", ".sqlite", ".lock", "package-lock.json") == []
