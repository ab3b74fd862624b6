"""Pictures of a published release from its public files: which ones, of what, and in which format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dphist_pipeline.answering.chosen_cells import Condition, chosen_cells
from dphist_pipeline.answering.published import PublicationWithdrawn
from dphist_pipeline.errors import DphistError
from dphist_pipeline.publishing.plots import main_picture
from dphist_pipeline.publishing.plots_drawing import alone
from dphist_pipeline.publishing.plots_page import figure_page
from dphist_pipeline.publishing.plots_sums import Grid
from dphist_pipeline.publishing.release_files import published_unbiased, read_audit
from dphist_pipeline.spec.axes import domain_of

ENDINGS = (".svg", ".png", ".html")
SHARPNESS = 2.0


class PictureRefused(DphistError):
    """A picture in a format that is not known, or that needs a library that is not there."""

    def __init__(self, file: Path, problem: str) -> None:
        self.file = file
        super().__init__(f"--output {str(file)[:200]!r}: {problem}")


@dataclass(frozen=True, eq=False)
class Pictured:
    """What is drawn of a publication: its cells and what stands above them."""

    grid: Grid
    title: str


def release_svg(folder: Path) -> str:
    """The picture of a whole publication, as Dagster's page and `dphist plot` show it."""
    audit = json.loads((folder / "audit.json").read_bytes())
    shown = pictured(folder, audit, {})
    return alone(main_picture(shown.grid).drawing, shown.title)


def write_picture(folder: Path, box: Mapping[str, Condition], where: str, file: Path) -> Path:
    """Draws a publication, or a box of it, as SVG, PNG or a page with the numbers beside the picture.

    Args:
        folder: of the publication.
        box: see `answering.boxes.answer_box`.
        where: the same as it was asked.
        file: its ending says the format.

    Raises:
        PictureRefused: another ending, or PNG without the library that it needs.
        PublicationWithdrawn, PublishedFilesDamaged, QuestionRefused: see `answer_published`.
    """
    check_format(file)
    audit = read_audit(folder)
    if "withdrawn" in audit:
        raise PublicationWithdrawn(audit)
    shown = pictured(folder, audit, box, where)
    picture = main_picture(shown.grid)
    if file.suffix.lower() == ".html":
        content = figure_page(picture, shown.title).encode()
    elif file.suffix.lower() == ".svg":
        content = alone(picture.drawing, shown.title).encode()
    else:
        import vl_convert

        content = vl_convert.svg_to_png(alone(picture.drawing, shown.title, dark=False), scale=SHARPNESS)
    try:
        file.write_bytes(content)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
    else:
        return file
    raise PictureRefused(file, problem)


def check_format(file: Path) -> None:
    """Refuses before any work what cannot be drawn."""
    if file.suffix.lower() not in ENDINGS:
        raise PictureRefused(file, "must end in .svg, .png or .html")
    if file.suffix.lower() == ".png" and find_spec("vl_convert") is None:
        raise PictureRefused(file, "PNG needs one more library: pip install 'dphist-pipeline[plots]', or use .svg")


def pictured(folder: Path, audit: Mapping[str, Any], box: Mapping[str, Condition], where: str = "") -> Pictured:
    """The cells of a publication that a box holds; all of them for an empty one."""
    domain = domain_of(audit["axes"])
    rows = pq.ParquetFile(folder / "histogram.parquet").read(["estimate", "unbiased_estimate"])
    values, noisy = (np.asarray(column.to_numpy()).reshape(domain.shape) for column in rows.columns)
    grid = Grid(domain, values, published_unbiased(audit, noisy), tuple(chosen_cells(domain, box)))
    period = "" if audit["period"] == "all" else f", {audit['period']}"
    asked = f", where {where.strip()}" if where.strip() else ""
    return Pictured(grid, f"{audit.get('title') or audit['release']}{period}{asked}")
