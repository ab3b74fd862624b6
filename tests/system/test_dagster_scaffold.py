"""`dg scaffold defs` writes the commented draft of a release."""

from __future__ import annotations

from pathlib import Path

import click
import dagster as dg
import pytest
from office import RECORDS, Office

from dphist_pipeline import HistogramRelease
from dphist_pipeline.integrations.dagster._scaffolding import DraftParams, ReleaseScaffolder

pytestmark = pytest.mark.outside


def request(folder: Path, source: str | None = None, form: str = "yaml") -> dg.ScaffoldRequest[DraftParams]:
    return dg.ScaffoldRequest(
        type_name="dphist_pipeline.HistogramRelease",
        target_path=folder,
        scaffold_format=form,  # type: ignore[arg-type]
        project_root=folder.parent,
        params=DraftParams(source=source),
    )


def test_a_scaffold_is_the_draft_of_dphist_new(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(office.folder)
    office.write_records(RECORDS)
    source = next(str(path.relative_to(office.folder)) for path in (office.folder / "data").iterdir())
    (office.folder / "defs" / "weekly").mkdir(parents=True)
    assert office.run("new", "weekly", "--from", source, "--output", "defs/weekly/new.yaml").code == 0
    ReleaseScaffolder().scaffold(request(Path("defs/weekly"), source))
    written = Path("defs/weekly/defs.yaml").read_text(encoding="utf-8")
    assert written == Path("defs/weekly/new.yaml").read_text(encoding="utf-8") and "# TO_DECIDE" in written
    assert "release: weekly\n" in written and "ward" in written


def test_a_scaffold_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    ReleaseScaffolder().scaffold(request(tmp_path / "weekly"))
    for asked, says in (
        (request(tmp_path / "weekly"), "is there already"),
        (request(tmp_path / "Weekly-Visits"), "is not a plain name, such as weekly_visits"),
        (request(tmp_path / "other", form="python"), "written in YAML"),
        (request(tmp_path / "other", source="none.csv"), "none.csv"),
    ):
        with pytest.raises(click.ClickException, match=says):
            ReleaseScaffolder().scaffold(asked)
    assert [path.name for path in tmp_path.iterdir()] == ["weekly"]


def test_dagster_knows_how_to_scaffold_a_release() -> None:
    from dagster.components.scaffold.scaffold import get_scaffolder

    assert isinstance(get_scaffolder(HistogramRelease), ReleaseScaffolder)
