"""What the package needs can be installed beside named versions of Dagster: the oldest, the pinned and the newest."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from requiring import missing

PROJECT = Path(__file__).resolve().parents[2]
BUILD = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = [*BUILD["dependencies"], *BUILD["optional-dependencies"]["dagster"]]
PINS = dict(
    line.split("==") for line in (PROJECT / "constraints.txt").read_text(encoding="utf-8").split() if "==" in line
)
(OLDEST,) = [found[1] for found in (re.fullmatch(r"dagster>=([\d.]+)", one) for one in NEEDED) if found]
OURS = ("dagster", "dagster-dg-core")
NAMED = {
    "oldest": [f"{name}=={OLDEST}" for name in OURS],
    "pinned": [f"{name}=={PINS[name]}" for name in OURS],
    "newest": list(OURS),
}
NEW_TYPER = ["dagster-dg-core==1.13.29", "typer>=0.29"]  # it needs typer<0.26


def resolved(*requirements: str) -> str:
    """What pip says against installing some packages together, without installing any; empty where nothing is.

    Of what is installed here and fits, pip asks no index. Skips where no index can be asked.
    """
    words = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-input", "--quiet"]
    words += ["--disable-pip-version-check", "--only-binary", ":all:"]
    done = subprocess.run([*words, *requirements], capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    named = [one for one in requirements if "==" in one or one in OURS]
    known = subprocess.run([*words, "--ignore-installed", "--no-deps", *named], capture_output=True, check=False)
    if known.returncode:
        missing("package_index", f"no package index gave {', '.join(named)}")
    return done.stderr[-4000:]


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param("oldest", marks=pytest.mark.outside),
        pytest.param("pinned", marks=pytest.mark.soak),
        pytest.param("newest", marks=pytest.mark.soak),
    ],
)
def test_the_package_can_be_installed_beside(versions: str) -> None:
    assert resolved(*NEEDED, *NAMED[versions]) == ""


@pytest.mark.soak
def test_a_floor_that_dagster_cannot_meet_is_noticed() -> None:
    assert "conflict" in resolved(*NEW_TYPER)
