"""Code lists that an operator declared public, for tests of everything else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dphist_pipeline.spec import axes
from dphist_pipeline.spec._categorical_axes import from_code_list
from dphist_pipeline.spec.sources import CodeListFolders, Decided


def below(*folders: Path) -> Decided:
    """Every file below these folders may be a code list."""
    return lambda: CodeListFolders(folders, lambda path: False)


def declare_project_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file of a project may be a code list of it, for commands that run without a ledger's decision."""

    def read(axis: Mapping[str, object], base: Path | None, decided: Decided | None) -> dict[str, object]:
        return from_code_list(axis, base, below(base or Path()))

    monkeypatch.setattr(axes, "from_code_list", read)
