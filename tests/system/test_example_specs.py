"""Every spec in `examples/` is rehearsed: the whole release on invented records, and its answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dphist_pipeline.cli.app import app

PROJECT = Path(__file__).parents[2]
SPECS = sorted(path for path in (PROJECT / "examples").rglob("*.yaml") if "HistogramRelease" in path.read_text("utf-8"))


@pytest.mark.parametrize("spec", SPECS, ids=[str(path.relative_to(PROJECT)) for path in SPECS])
def test_a_spec_of_the_examples_is_rehearsed(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(spec.parent)
    result = CliRunner().invoke(app, ["rehearse", spec.name])
    assert result.exit_code == 0, result.output
