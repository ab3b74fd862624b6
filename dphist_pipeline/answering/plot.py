"""Pictures of a published release from its public files, as SVG or a page with the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.published import publication_withdrawn
from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.languages.texts import days_text, gettext, in_language
from dphist_pipeline.base.shown_below import limit_of
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.chosen_cells import Condition, chosen_cells
from dphist_pipeline.estimates.estimate import Estimate, with_known
from dphist_pipeline.publishing.pages import picture_page
from dphist_pipeline.publishing.picture_sums import Grid
from dphist_pipeline.publishing.pictures import Picture
from dphist_pipeline.publishing.published_estimate import published_figures
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of

ENDINGS = (".svg", ".html")


def picture_refused(file: Path, problem: str) -> Refused:
    """A picture cannot be written: its format is unknown, or its file cannot be made."""
    return Refused(f"--output {str(file)[:200]!r}: {problem}", code="picture_refused")


def release_svg(folder: Path) -> str:
    """The picture of a whole publication, whose files are not checked, as SVG: for Dagster's page and `dphist plot`."""
    audit = json.loads((folder / "audit.json").read_bytes())
    with in_language(_language_of(folder, audit)):
        picture, title = _picture_of(folder, audit, {})
        return picture.svg(title)


def _language_of(folder: Path, audit: Mapping[str, Any]) -> str:
    """The language in which the card of a publication is told; a table of a family has that of the family."""
    release = next((place.parent for place in folder.parents if place.name.startswith("period=")), folder)
    return About.of(release.parent).language_of(audit)


def write_picture(
    folder: Path,
    box: Mapping[str, Condition],
    where: str,
    file: Path,
    *,
    overwrite: bool = False,
    decimals: int | None = None,
    over_periods: bool = False,
) -> Path:
    """Draws a publication, or a box of it, as SVG or a page with the numbers below the picture.

    `where`: the condition that gave the box, as its author wrote it. Without decimals, as many as the noise justifies.
    `over_periods`: draw the sum in each period of the release in place of the cells of one.

    Raises:
        Refused: the ending is unknown, or the file is there already or cannot be written; or there are no periods.
        Refused, PublishedFilesDamaged: see `asking.Publication`.
    """
    check_output(file, overwrite)
    audit = read_audit(folder)
    if "withdrawn" in audit:
        raise publication_withdrawn(audit)
    with in_language(_language_of(folder, audit)):
        picture, title = (_over_periods if over_periods else _picture_of)(folder, audit, box, where)
        _write(picture, title, file, overwrite, decimals)
    return file


def _over_periods(
    folder: Path, audit: Mapping[str, Any], box: Mapping[str, Condition], where: str = ""
) -> tuple[Picture, str]:
    """The picture of the sums in a box over all periods of a release, and its title."""
    if audit["period"] == "all":
        raise Refused(f"{audit['release']} has no periods to draw: leave out --over", code="picture_refused")
    rows = Publication.read(folder).by_period(box).to_pylist()
    # One scale for all periods: the strictest rule of any holds for the whole picture.
    release = folder.parents[1]
    audits = [read_audit(release / f"period={row['period']}" / f"revision={row['revision']}") for row in rows]
    strictest = max([audit, *audits], key=lambda one: limit_of(one) or 0)
    return Picture.of_periods(rows, audit.get("model") == "local").told_as(strictest), _title(audit, "", where)


def _write(picture: Picture, title: str, file: Path, overwrite: bool, decimals: int | None) -> None:
    picture = replace(picture, sums=replace(picture.sums, asked_decimals=decimals))
    is_svg = file.suffix.lower() == ".svg"
    content = (picture.svg(title) if is_svg else picture_page(picture, title)).encode()
    try:
        with file.open("wb" if overwrite else "xb") as opened:
            opened.write(content)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
    else:
        return
    raise picture_refused(file, problem)


def check_output(file: Path, overwrite: bool) -> None:
    """Refuses an unknown format, and a file that is there already unless it may be replaced, before any work."""
    if file.suffix.lower() not in ENDINGS:
        raise picture_refused(file, "must end in .svg or .html")
    if file.exists() and not overwrite:
        raise picture_refused(file, "is there already; name another file, or say --overwrite")


def _picture_of(
    folder: Path, audit: Mapping[str, Any], box: Mapping[str, Condition], where: str = ""
) -> tuple[Picture, str]:
    """The picture of the cells in a box, of all cells for an empty one, and its title."""
    domain = domain_of(audit["axes"])
    cells = pq.ParquetFile(folder / "histogram.parquet").read(["estimate", "unbiased_estimate"])
    values, noisy = (np.asarray(column.to_numpy()).reshape(domain.shape) for column in cells.columns)
    cells_alone = Estimate(domain, values, (), published_unbiased(audit, noisy))
    rows = with_known(cells_alone, published_figures(folder, audit)).of_rows
    labelled = rows.domain.called(audit.get("axis_labels"))
    grid = Grid(labelled, rows.values, rows.unbiased, tuple(chosen_cells(rows.domain, box)), rows.known)
    period = "" if audit["period"] == "all" else f", {days_text(audit['period'])}"
    return Picture.of_grid(grid).told_as(audit), _title(audit, period, where)


def _title(audit: Mapping[str, Any], period: str, where: str) -> str:
    condition = gettext(", where %(condition)s", condition=where.strip()) if where.strip() else ""
    return f"{audit.get('title') or audit['release']}{period}{condition}"
