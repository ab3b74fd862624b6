"""`dg scaffold defs dphist_pipeline.HistogramRelease NAME`: the draft that `dphist new` writes, as a component."""

from pathlib import Path

import click
import dagster as dg
from pydantic import BaseModel, Field

from dphist_pipeline.errors import DphistError
from dphist_pipeline.spec import fields
from dphist_pipeline.workbench.planning.columns import read_layout
from dphist_pipeline.workbench.planning.drafting import draft, draft_refused, write_draft


class DraftParams(BaseModel):
    """What may be given beside the name."""

    source: str | None = Field(
        default=None, description="Parquet or CSV: names and types of its columns become axes. No value is read."
    )


class ReleaseScaffolder(dg.Scaffolder[DraftParams]):
    """Writes `defs.yaml` with comments, in which each decision of a person is marked TO_DECIDE."""

    @classmethod
    def get_scaffold_params(cls) -> type[DraftParams]:
        """The options of `dg scaffold defs`."""
        return DraftParams

    def scaffold(self, request: dg.ScaffoldRequest[DraftParams]) -> None:
        """Writes the draft; the release is called like its folder.

        Raises:
            ClickException: the folder's name is none of a release, the format is Python, or a file is there.
        """
        file, source = Path(request.target_path) / "defs.yaml", request.params.source if request.params else None
        try:
            if request.scaffold_format != "yaml":
                raise draft_refused(str(file), "a release is written in YAML; leave out --format")
            text = draft(_name(file), file, source, None if source is None else read_layout(source))
            file.parent.mkdir(parents=True, exist_ok=True)
            write_draft(text, file)
        except DphistError as error:
            problem = str(error)
        else:
            return
        raise click.ClickException(problem)  # which `dg` prints in one line


def _name(file: Path) -> str:
    try:
        return fields.release_name(file.parent.name)
    except ValueError as error:
        problem = str(error)
    raise draft_refused(str(file), problem)
