"""Records that nobody should write, read by the newest DuckDB that can be had, before any office installs it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from requiring import missing
from spec_seeds import PROJECT

HOSTILE = (
    *("fuzzing/test_fuzzed_ingest.py", "fuzzing/test_found_by_fuzzing.py", "attacks/test_values_of_any_size.py"),
    *("unit/test_extreme_values.py", "unit/test_rows_alone.py"),
)


def newest(folder: Path) -> str:
    """Installs the newest DuckDB into a folder of its own, and gives its version; skips without a package index."""
    words = ("install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(folder), "duckdb")
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        missing("newest_duckdb", "no package index gave the newest DuckDB")
    return version_in(folder)


def version_in(folder: Path) -> str:
    (found,) = metadata.distributions(name="duckdb", path=[str(folder)])
    return found.version


def run_with(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Runs tests in a process where the packages of a folder come first."""
    tried = [sys.executable, "-m", "pytest", "-p", "newest_engine", "-x", "-p", "no:cacheprovider"]
    tried += ["-m", "not soak and not audit and not outside"]  # slow tests, too
    path = os.pathsep.join([str(folder), str(PROJECT / "tests")])
    # As many examples as in `make test`: all of them are tried on the suite's own version.
    environment = {name: value for name, value in os.environ.items() if name != "DPHIST_SOAK"} | {"PYTHONPATH": path}
    files = [str(PROJECT / "tests" / test) for test in tests]
    return subprocess.run([*tried, *files], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.soak
def test_hostile_records_are_nothing_to_the_newest_duckdb(tmp_path: Path) -> None:
    version = newest(tmp_path)
    if version == metadata.version("duckdb"):
        pytest.skip(f"none newer can be had: DuckDB {version}, which the suite runs on, is the newest")
    ran = run_with(tmp_path, *HOSTILE)
    assert ran.returncode == 0, f"DuckDB {version}: {ran.stdout[-4000:]}"


@pytest.mark.soak
def test_a_newer_engine_is_met_by_the_tests_and_its_faults_are_seen(tmp_path: Path) -> None:
    """A stand-in, which says that it is newer and is the installed one; then one that reads another value."""
    installed = Path(str(metadata.distribution("duckdb").locate_file("duckdb")))
    (tmp_path / "duckdb-9.9.0.dist-info").mkdir()
    (tmp_path / "duckdb-9.9.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: duckdb\nVersion: 9.9.0\n"
    )
    (tmp_path / "duckdb").mkdir()
    whole = f"__path__ = [{str(installed)!r}]\nexec(open({str(installed / '__init__.py')!r}).read())\n"
    (tmp_path / "duckdb" / "__init__.py").write_text(whole)
    assert version_in(tmp_path) == "9.9.0"
    tried = "attacks/test_values_of_any_size.py"
    ran = run_with(tmp_path, tried)
    assert ran.returncode == 0, ran.stdout[-4000:]
    (tmp_path / "duckdb" / "__init__.py").write_text(f"{whole}\ndel connect\n")
    assert run_with(tmp_path, tried).returncode == 1
