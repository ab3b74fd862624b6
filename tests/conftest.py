"""What tests of several folders share."""

from __future__ import annotations

from pathlib import Path

import pytest
from office import Office


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An empty office, and nothing of the developer's own environment."""
    for name in ("DPHIST_STORE", "DPHIST_LEDGER", "DPHIST_DEBUG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    made = Office(tmp_path / "office")
    monkeypatch.chdir(made.folder)
    return made
