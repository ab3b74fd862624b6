"""Pictures of a published release from its public files, as SVG, PNG or a page with the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.published import publication_withdrawn
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.chosen_cells import Condition, chosen_cells
from dphist_pipeline.publishing.pages import picture_page
from dphist_pipeline.publishing.picture_sums import Grid, Groups, Marginal
from dphist_pipeline.publishing.pictures import MOST_BARS, Picture, draw, how_to_read, main_picture
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of

ENDINGS = (".svg", ".png", ".html")
SHARPNESS = 2.0


def picture_refused(file: Path, problem: str) -> Refused:
    """A picture cannot be written: its format is unknown, or its file cannot be made."""
    return Refused(f"--output {str(file)[:200]!r}: {problem}", code="picture_refused")


def release_svg(folder: Path) -> str:
    """The picture of a whole publication as SVG, for Dagster's page and `dphist plot`.

    Args:
        folder: of the publication; its files are not checked here.
    """
    return draw(*_picture_of(folder, json.loads((folder / "audit.json").read_bytes()), {}))


def write_picture(
    folder: Path,
    box: Mapping[str, Condition],
    where: str,
    file: Path,
    *,
    overwrite: bool = False,
    decimals: int | None = None,
) -> Path:
    """Draws a publication, or a box of it, as SVG, PNG or a page with the numbers below the picture.

    Args:
        where: the condition that gave the box, as its author wrote it.
        overwrite: replace the file if it is there.
        decimals: of numbers in the picture; None for as many as their noise justifies.

    Raises:
        Refused: the ending is unknown, or the file is there already or cannot be written.
        Refused, PublishedFilesDamaged: see `asking.Publication`.
    """
    check_output(file, overwrite)
    audit = read_audit(folder)
    if "withdrawn" in audit:
        raise publication_withdrawn(audit)
    _write(*_picture_of(folder, audit, box, where), file, overwrite, decimals)
    return file


def write_periods(
    folder: Path,
    box: Mapping[str, Condition],
    where: str,
    file: Path,
    *,
    overwrite: bool = False,
    decimals: int | None = None,
) -> int:
    """Draws the count in a box over all periods of a release, as `write_picture` draws one period.

    Returns:
        How many periods are drawn: the newest `MOST_BARS`.

    Raises:
        Refused: the release has no periods; see `write_picture`, too.
    """
    check_output(file, overwrite)
    publication = Publication.read(folder)
    if publication.audit["period"] == "all":
        raise picture_refused(file, f"{publication.audit['release']} has no periods to draw: leave out --over")
    rows = publication.by_period(box).to_pylist()
    picture = _picture_of_periods(rows[-MOST_BARS:], len(rows), publication.audit.get("model") == "local")
    asked = f", where {where.strip()}" if where.strip() else ""
    _write(
        picture, f"{publication.audit.get('title') or publication.audit['release']}{asked}", file, overwrite, decimals
    )
    return min(len(rows), MOST_BARS)


def _picture_of_periods(rows: Sequence[Mapping[str, Any]], known: int, reported: bool) -> Picture:
    """Bars, one a period; what the intervals do not say, and periods that are missing, stand in the note."""
    several = rows[0]["cells"] > 1
    has_bars = all(row["ci_lower"] is not None for row in rows)
    centres = [row["unbiased"] if several and has_bars else row["estimate"] for row in rows]
    low, high = ([row[end] for row in rows] for end in ("ci_lower", "ci_upper"))
    names = tuple(str(row["period"]) for row in rows)
    positions = tuple(np.array([place]) for place in range(len(rows)))
    sums = Marginal(
        (Groups("period", positions, names, names, ordered=True),),
        np.array(centres, dtype=np.float64),
        reported=reported,
        summed="everywhere" if several and has_bars else None,
        **_bars(rows, low, high) if has_bars else {},
    )
    missing = sum((after["period_start"] - before["period_end"]).days for before, after in pairwise(rows))
    notes = [how_to_read(sums), "Intervals cover noise, not chance: counts differ by chance, too."]
    notes += [f"Between them {missing:,} days are in no published period, and have no bar."] if missing else []
    notes += [f"The newest {len(rows)} of {known:,} periods."] if known > len(rows) else []
    return Picture("Counts by period", " ".join(notes), sums)


def _bars(rows: Sequence[Mapping[str, Any]], low: Sequence[float], high: Sequence[float]) -> dict[str, Any]:
    ends = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    errors = np.array([row["noise_error"] for row in rows], dtype=np.float64)
    words = np.array([row["reliability"] for row in rows])
    return {"low": ends[0], "high": ends[1], "reach": (ends[1] - ends[0]) / 2, "errors": errors, "words": words}


def _write(picture: Picture, title: str, file: Path, overwrite: bool, decimals: int | None) -> None:
    picture = replace(picture, sums=replace(picture.sums, asked_decimals=decimals))
    if file.suffix.lower() == ".png":
        import vl_convert

        content = vl_convert.svg_to_png(draw(picture, title), scale=SHARPNESS)
    else:
        content = (draw if file.suffix.lower() == ".svg" else picture_page)(picture, title).encode()
    try:
        with file.open("wb" if overwrite else "xb") as opened:
            opened.write(content)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
    else:
        return
    raise picture_refused(file, problem)


def check_output(file: Path, overwrite: bool) -> None:
    """Refuses an unknown format, and a file that is there already, before any work.

    Args:
        overwrite: whether it may be there.

    Raises:
        Refused: with the reason.
    """
    if file.suffix.lower() not in ENDINGS:
        raise picture_refused(file, "must end in .svg, .png or .html")
    if file.exists() and not overwrite:
        raise picture_refused(file, "is there already; name another file, or say --overwrite")


def _picture_of(
    folder: Path, audit: Mapping[str, Any], box: Mapping[str, Condition], where: str = ""
) -> tuple[Picture, str]:
    """The picture of the cells in a box, of all cells for an empty one, and its title."""
    domain = domain_of(audit["axes"])
    rows = pq.ParquetFile(folder / "histogram.parquet").read(["estimate", "unbiased_estimate"])
    values, noisy = (np.asarray(column.to_numpy()).reshape(domain.shape) for column in rows.columns)
    grid = Grid(domain, values, published_unbiased(audit, noisy), tuple(chosen_cells(domain, box)))
    period = "" if audit["period"] == "all" else f", {audit['period']}"
    asked = f", where {where.strip()}" if where.strip() else ""
    return main_picture(grid), f"{audit.get('title') or audit['release']}{period}{asked}"
